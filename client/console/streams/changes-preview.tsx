import { trpc } from '../api.ts';
import { Failure } from '../components/failure.tsx';
import { formatCount, pluralize } from '../components/format.ts';
import { useAction } from '../use-action.ts';
import { PreviewButton } from './preview-button.tsx';

/** What the next run of a stream would send, on request. For streams that send only differences. */
export function ChangesPreview({ connection_id, stream_id }: { connection_id: string; stream_id: string }) {
  const preview = useAction(trpc.connections.previewChanges, { failed: null, refresh: [] });
  return (
    <section className="stack" aria-label="Preview of changes">
      <div className="row">
        <PreviewButton isPending={preview.isPending} onClick={() => preview.mutate({ connection_id, stream_id })}>
          Preview changes
        </PreviewButton>
        <span className="dimmed" role="status">
          {preview.data && describe(preview.data)}
        </span>
      </div>
      {preview.error && <Failure title="Rows not compared" error={preview.error} />}
    </section>
  );
}

function describe({
  inserts,
  changes,
  deletes,
  rejected,
}: Record<'inserts' | 'changes' | 'deletes' | 'rejected', number>) {
  const parts = [pluralize(inserts, 'insert'), pluralize(changes, 'change'), pluralize(deletes, 'delete')];
  const without = rejected === 0 ? '' : `, ${formatCount(rejected)} without a key of their own`;
  return `Would send ${formatCount(inserts + changes + deletes)}: ${parts.join(', ')}${without}`;
}
