import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { connectionStreams, SENT_OPERATIONS, type StreamRow } from '../../../../db/schema/index.ts';
import { actorOf, type Ctx } from '../../../api/procedure.ts';
import { asUpstreamError } from '../../../api/upstream-error.ts';
import { count, idInBody } from '../../../api/wire-types.ts';
import { loadStream } from '../../../catalog/resolve-stream.ts';
import { readRows } from '../../../connector-runtime/account-connector-calls.ts';
import { openParameters } from '../../../connector-runtime/connector-secrets.ts';
import { parseSettings } from '../../../connector-runtime/parse-settings.ts';
import { hasDateCursor } from '../../../pipeline/custom-run/streams.ts';
import { windowOf } from '../../../pipeline/custom-run/windows.ts';
import type { Cell, RowComparer } from '../../../connectors/contract/connector.ts';
import { ConfigurationError } from '../../../connectors/contract/errors.ts';
import { sendsDifferences } from '../../../pipeline/stream-check/settings.ts';
import { planTransfer, readRequest, tableName, type TransferPlan } from '../../../pipeline/transfer-plan.ts';
import { badRequest } from '../../../platform/errors.ts';
import { createMapper } from '../../../transfer/mapping.ts';
import type { KeyTable } from '../../../transfer/sent-rows/key-table.ts';
import { compareRow, isMissing, loadKeys } from '../../../transfer/sent-rows/sent-rows.ts';
import { findConnection } from '../../access/connection.ts';
import { connectorPair } from '../streams/update.ts';

export const PreviewChangesRequest = z
  .strictObject({ stream_id: idInBody() })
  .meta({ id: 'PreviewChangesRequest', examples: [{ stream_id: '019a0000-0000-7000-8000-000000000003' }] });

const ChangedRow = z
  .object({ operation: z.enum(SENT_OPERATIONS), key: z.string().meta({ description: 'A list of values, as JSON.' }) })
  .meta({ id: 'ChangedRow' });

export const ChangesPreview = z
  .object({
    rows_read: count(),
    inserts: count(),
    changes: count(),
    deletes: count().meta({
      description: 'Rows that the source no longer has, whether the destination deletes them or not.',
    }),
    unchanged: count(),
    rejected: count().meta({ description: 'Rows without a key, or with the key of another row.' }),
    sample: z.array(ChangedRow).meta({ description: 'The first 20 rows that would be sent.' }),
  })
  .meta({ id: 'ChangesPreview' });
type ChangesPreview = z.infer<typeof ChangesPreview>;

const SAMPLE = 20;

/**
 * What the next run of a stream would send. Reads all its rows; stores nothing but the use of the secrets.
 * @throws ApiError 400 `unknown_stream`, `differences_unsupported`, `upstream_auth_failed`, `upstream_timeout`,
 * `upstream_error`.
 */
export async function previewChanges(
  ctx: Ctx,
  input: { connection_id: string; stream_id: string },
): Promise<ChangesPreview> {
  const connection = await findConnection(ctx, input.connection_id);
  const stored = await streamOf(ctx, connection.id, input.stream_id);
  const sides = await connectorPair(ctx, connection);
  const { source, source_connector } = sides;
  if (!sendsDifferences(stored, sides.destination_connector)) {
    const message = `${stored.name} sends all rows that it reads. Set full_refresh and append_dedup, for a destination that compares rows`;
    throw badRequest('differences_unsupported', message, { field: 'stream_id' });
  }
  try {
    const { schema, stream } = await loadStream(ctx.deps, { connection, source, stream: stored });
    const plan = planTransfer({ source: source_connector, schema, stream });
    const identity = await identityOf(ctx, sides, { plan, table: tableName(connection, stream) });
    const { table } = await loadKeys(ctx.deps.db, { stream_id: stream.id, place: identity.place });
    const days = { start: connection.start_date, end: null };
    const window = windowOf(days, { timezone: connection.schedule.timezone, dates: hasDateCursor(schema, stream) });
    const request = readRequest({ plan, schema, stream, state: null, window });
    const found: ChangesPreview = { ...NOTHING, sample: [] };
    const map = createMapper(plan, ctx.deps.secrets.maskKeys(source.account_id));
    const take = (rows: Cell[][]) => {
      found.rows_read += rows.length;
      for (const row of map({ rows, bytes: 0 }).rows) countRow(found, row, { table, identity });
    };
    await readRows(ctx.deps, source, { request, actor: actorOf(ctx.principal), take });
    return { ...found, deletes: window === null ? table.count(isMissing) : 0 };
  } catch (error) {
    throw asUpstreamError(error);
  }
}

async function streamOf(ctx: Ctx, connection_id: string, stream_id: string): Promise<StreamRow> {
  const [stream] = await ctx.db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection_id), eq(connectionStreams.id, stream_id)));
  if (stream) return stream;
  throw badRequest('unknown_stream', 'stream_id is not a stream of this connection', { field: 'stream_id' });
}

/** As the writer of a run gets it, with the same settings. */
async function identityOf(
  ctx: Ctx,
  { destination, destination_connector }: Awaited<ReturnType<typeof connectorPair>>,
  { plan, table }: { plan: TransferPlan; table: string },
): Promise<RowComparer> {
  const parameters = openParameters(ctx.deps, destination);
  const parsed = await parseSettings(destination.account_id, destination_connector, parameters);
  if ('problems' in parsed) {
    const [first] = parsed.problems;
    throw new ConfigurationError('invalid_parameter', `${destination.name}: ${first?.message ?? 'invalid settings'}`);
  }
  const columns = plan.columns.map(({ target }) => target);
  return destination_connector.identifyRows!(parsed.config, { table, columns, primary_key: plan.primary_key });
}

const NOTHING = { rows_read: 0, inserts: 0, changes: 0, deletes: 0, unchanged: 0, rejected: 0 };
const COUNTED = {
  insert: 'inserts',
  update: 'changes',
  same: 'unchanged',
  repeated: 'rejected',
  no_key: 'rejected',
} as const;

function countRow(
  found: ChangesPreview,
  row: readonly Cell[],
  { table, identity }: { table: KeyTable; identity: RowComparer },
): void {
  const how = compareRow(table, identity, row);
  found[COUNTED[how]] += 1;
  if ((how !== 'insert' && how !== 'update') || found.sample.length >= SAMPLE) return;
  found.sample.push({ operation: how, key: identity.key(row)! });
}
