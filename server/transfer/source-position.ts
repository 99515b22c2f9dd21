import { onSide } from '../connector-runtime/side-error.ts';
import type {
  AnySource,
  ConnectorContext,
  ReadRequest,
  SourceOrigin,
  StreamState,
} from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import type { Attempt } from './attempt.ts';

interface Read {
  source: AnySource;
  ctx: ConnectorContext<unknown>;
  request: ReadRequest;
  /** The state whose rows must still be at the source; null: the read begins at the start. */
  known: StreamState | null;
}

/**
 * The origin that the states of a cursor read get, after a comparison with that of the read before. CDC compares the
 * log instead.
 * @throws SideError of the source with a ConfigurationError `source_went_back`
 */
export async function provenOrigin(attempt: Attempt, read: Read): Promise<SourceOrigin | null> {
  const { source, ctx, request, known } = read;
  const { origin } = source;
  if (!origin || request.sync_mode !== 'incremental' || request.reader_id !== undefined) return null;
  return onSide('source', async () => {
    const found = await origin.find(ctx);
    const earlier = known?.origin ?? null;
    if (!found || !earlier) return found ?? earlier;
    const compared = await origin.compare(ctx, earlier, found);
    if (compared.history === 'kept') return compared.origin;
    const { name } = request.stream;
    const { difference } = compared;
    if (compared.history === 'lost') throw wentBack(name, known!, difference);
    if (known!.cursor !== null && !(await hasRowsFrom(read, known!.cursor))) {
      throw wentBack(name, known!, `${difference}, and it has no row at or after this cursor`);
    }
    attempt.warn(
      'source_changed',
      `${name}: ${difference}. The source cannot prove that it has everything that was read before. It has rows at or ` +
        'after the cursor, so the read continues there. Reset the cursor to read the whole stream again',
    );
    return compared.origin;
  });
}

const wentBack = (name: string, { cursor }: StreamState, difference: string) =>
  new ConfigurationError(
    'source_went_back',
    `${name} cannot continue from ${cursor === null ? 'its last read' : `cursor ${cursor}`}: ${difference}. Reset the ` +
      'cursor to read the whole stream again, or set it to the value to read on from',
  );

/** A state that has nothing but the cursor gives the rows at the cursor again. */
async function hasRowsFrom({ source, ctx, request }: Read, cursor: string): Promise<boolean> {
  const { cursor_field, stream } = request;
  const field = stream.fields.find(({ path }) => Bun.deepEquals(path, cursor_field));
  const columns = field ? [{ field, masking: 'none' as const }] : request.columns;
  const asked = { ...request, columns, filters: [], primary_key: [], state: { cursor } };
  for await (const { rows } of source.read(ctx, asked)) if (rows.length > 0) return true;
  return false;
}
