import { type RouterInputs, type RouterOutputs, trpc } from '../api.ts';
import { CopyBlock } from '../components/copy-block.tsx';
import { Failure } from '../components/failure.tsx';
import { formatCompact, pluralize } from '../components/format.ts';
import { useAction } from '../use-action.ts';
import { PreviewButton } from './preview-button.tsx';
import { CellText } from './rows-table.tsx';

export type PreviewRequest = RouterInputs['connections']['previewStream'];
type Preview = RouterOutputs['connections']['previewStream'];

/** The first rows of a stream on request: each value as it is in the source and as a run would write it. */
export function StreamPreview({ request }: { request: PreviewRequest }) {
  const preview = useAction(trpc.connections.previewStream, { failed: null, refresh: [] });
  const isStale = preview.data !== undefined && JSON.stringify(preview.variables) !== JSON.stringify(request);
  return (
    <section className="stack stream-preview" aria-label={`Preview of ${request.stream.name}`}>
      <div className="row">
        <PreviewButton isPending={preview.isPending} onClick={() => preview.mutate(request)}>
          {preview.data ? 'Refresh preview' : 'Preview data'}
        </PreviewButton>
        <span className="dimmed" role="status">
          {preview.data && (isStale ? 'The settings have changed since this preview' : describe(preview.data))}
        </span>
      </div>
      {preview.error && <Failure title="Rows not read" error={preview.error} />}
      {preview.data && <PreviewTable preview={preview.data} />}
      {preview.data?.definition && (
        <CopyBlock label="Statement that creates the table, unless it exists" text={preview.data.definition} />
      )}
    </section>
  );
}

function describe({ estimated_rows, rows, rows_skipped }: Preview): string {
  const total = estimated_rows === null ? 'unknown size' : `about ${formatCompact(estimated_rows)} in the stream`;
  const skipped = rows_skipped === 0 ? '' : `, ${rows_skipped} over 1 MB left out`;
  return `First ${pluralize(rows.length, 'row')}, ${total}${skipped}`;
}

const PreviewTable = ({ preview: { columns, rows } }: { preview: Preview }) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
  <div className="table-frame preview-frame" tabIndex={0} role="region" aria-label="Rows">
    <table className="table compact">
      <thead>
        <tr>
          {columns.map(({ field, name, source_type, type, masked }) => (
            <th key={name} className="nowrap">
              {field === name ? name : `${field} → ${name}`}
              <div className="dimmed">{typesOf(source_type, masked ? 'masked' : type)}</div>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ source, destination }, row) => (
          // Rows have no identity but their position.
          // oxlint-disable-next-line react/no-array-index-key
          <tr key={row}>
            {columns.map(({ name, masked }, at) => (
              <td key={name} className="mono preview-cell">
                <Value from={masked ? undefined : source[at]} to={destination[at] ?? null} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const typesOf = (from: string, to: string) => (from === to ? from : `${from} → ${to}`);

const Value = ({ from, to }: { from: string | null | undefined; to: string | null }) =>
  from === undefined || from === to ? (
    <CellText value={to} />
  ) : (
    <>
      <CellText value={from} /> → <CellText value={to} />
    </>
  );
