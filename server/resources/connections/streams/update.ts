import { and, eq, inArray } from 'drizzle-orm';
import {
  accountConnectors,
  type ConnectionRow,
  connectionStreams,
  type StreamRow,
} from '../../../../db/schema/index.ts';
import type { StreamSchema } from '../../../connectors/contract/connector.ts';
import { badRequest } from '../../../platform/errors.ts';
import type { Ctx } from '../../../api/procedure.ts';
import { readsLogOnly } from '../../../runs/claim-together.ts';
import { forgetSentRows } from '../../../runs/delivery/sent-rows.ts';
import { stateSetTo } from '../../../runs/set-state.ts';
import { liveRunIds } from '../../access/connection.ts';
import { readCatalog } from '../catalog.ts';
import { connectorsOf } from './references.ts';
import type { UpdateConnectionRequest } from '../schema.ts';
import { readStreams, storeStreams } from './store.ts';
import { checkedPlan, findSharedTables, refuseFindings } from './check.ts';
import { streamKey } from './selection.ts';
import { isContinuous } from '../../../pipeline/schedule.ts';
import { settingsOf } from '../../../pipeline/stream-check/settings.ts';

/**
 * Applies an update to streams: settings, cursors, and table names after a change of prefix. Returns the changed
 * fields.
 * The caller holds `lockTables`.
 * @throws ApiError 400 `run_active` with `connection_run_id`, `catalog_not_ready`, those of planStreams and of findings.
 */
export async function updateStreams(
  ctx: Ctx,
  connection: ConnectionRow,
  input: UpdateConnectionRequest,
): Promise<string[]> {
  const { streams, reset_cursor } = input;
  const moved = (['table_prefix', 'destination_schema'] as const).some(
    (key) => input[key] !== undefined && input[key] !== connection[key],
  );
  if (!streams && !reset_cursor && !moved) return [];
  // A run that ends with the change may confirm a log, of which a cursor that is set needs a part.
  const setsCursor = reset_cursor?.some(({ value }) => value !== null) === true;
  if (setsCursor) await refuseWhileRunning(ctx, connection);
  else await refuseUnlessRollsOver(ctx, connection);
  const before = await readStreams(ctx, connection.id);
  const changed: string[] = [];
  const { table_prefix = connection.table_prefix, destination_schema = connection.destination_schema } = input;
  const ends = await connectorPair(ctx, connection);
  const where = { ...ends, connection_id: connection.id, table_prefix, destination_schema, renamed: moved };
  if (streams) {
    const planned = await replan(ctx, connection, { before, where, input });
    if (await storeStreams(ctx, connection, { before, planned })) changed.push('streams');
  } else if (moved) {
    const rows = before.map((row) => ({ ...row, settings: settingsOf(row), field: 'streams', isChecked: true }));
    refuseFindings(await findSharedTables(ctx, rows, where));
  }
  if (moved) {
    const own = eq(connectionStreams.connection_id, connection.id);
    await ctx.db.update(connectionStreams).set({ fresh_at: null }).where(own);
  }
  if (reset_cursor && (await resetCursors(ctx, { connection, before, reset_cursor }))) changed.push('cursors');
  return changed;
}

type Scheduled = Pick<ConnectionRow, 'id' | 'schedule'>;

/**
 * A continuous run ends at a change of its connection, between two transactions, and the next one begins with the new
 * settings. Streams that it does not read from the log could be tried again with other settings in the middle.
 * @throws ApiError 400 `run_active`
 */
export async function refuseUnlessRollsOver(ctx: Ctx, connection: Scheduled): Promise<void> {
  if (!(await rollsOver(ctx, connection))) await refuseWhileRunning(ctx, connection);
}

async function rollsOver(ctx: Ctx, { id, schedule }: Scheduled): Promise<boolean> {
  if (!isContinuous(schedule)) return false;
  for (const run_id of await liveRunIds(ctx, id)) if (!(await readsLogOnly(ctx.db, run_id))) return false;
  return true;
}

async function refuseWhileRunning(ctx: Ctx, { id, schedule }: Scheduled): Promise<void> {
  const [connection_run_id] = await liveRunIds(ctx, id);
  if (!connection_run_id) return;
  const how = isContinuous(schedule) ? '. Pause the connection, which ends its run' : '';
  throw badRequest('run_active', `Streams cannot be changed while a run is active${how}`, { connection_run_id });
}

type Destined = Parameters<typeof findSharedTables>[2] & Awaited<ReturnType<typeof connectorPair>>;

async function replan(
  ctx: Ctx,
  connection: ConnectionRow,
  { before, where, input }: { before: StreamRow[]; where: Destined; input: UpdateConnectionRequest },
) {
  const catalog = await readCatalog(ctx, connection.source_id);
  if (catalog.length === 0)
    throw badRequest('catalog_not_ready', 'The streams of the source have not been discovered yet');
  const replaces = input.streams_mode === 'replace';
  const gone = before.filter((row) => !catalog.some((stream) => streamKey(stream) === streamKey(row)));
  const requests = input.streams ?? [];
  const dropped = requests.filter((one) => one.selected === false && gone.some((row) => names(one, row)));
  const selection = {
    ...where,
    catalog,
    reverse_etl: connection.kind === 'reverse_etl',
    requests: requests.filter((one) => !dropped.includes(one)),
    current: new Map(before.map((row) => [streamKey(row), settingsOf(row)])),
    unnamed: replaces ? ('deselect' as const) : ('keep' as const),
  };
  const { planned, findings } = await checkedPlan(ctx, selection, where);
  refuseFindings(findings);
  // Streams that the source no longer has can still be deselected.
  const deselected = gone.filter((row) => replaces || dropped.some((one) => names(one, row)));
  return [...planned, ...deselected.map((row) => ({ ...row, settings: { ...settingsOf(row), selected: false } }))];
}

const names = (request: { name: string; namespace?: string | null }, row: StreamRow) =>
  request.name === row.name && (request.namespace == null || request.namespace === row.namespace);

export async function connectorPair(ctx: Ctx, connection: ConnectionRow) {
  const rows = await ctx.db
    .select()
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [connection.source_id, connection.destination_id]));
  const source = rows.find((row) => row.id === connection.source_id);
  const destination = rows.find((row) => row.id === connection.destination_id);
  if (!source || !destination) throw new Error(`an end of connection ${connection.id} is gone`);
  return { source, destination, ...connectorsOf(source, destination) };
}

async function resetCursors(
  ctx: Ctx,
  input: {
    connection: ConnectionRow;
    before: StreamRow[];
    reset_cursor: NonNullable<UpdateConnectionRequest['reset_cursor']>;
  },
): Promise<boolean> {
  const catalog = new Map((await readCatalog(ctx, input.connection.source_id)).map((one) => [streamKey(one), one]));
  for (const [index, { stream_id, value }] of input.reset_cursor.entries()) {
    const field = `reset_cursor.${index}`;
    const row = input.before.find((one) => one.id === stream_id);
    if (!row) throw badRequest('unknown_stream', 'stream_id is not a stream of this connection', { field });
    const stream = catalog.get(streamKey(row));
    if (value !== null && stream) refuseForeignValue(value, { row, stream, field });
    await ctx.db
      .update(connectionStreams)
      .set({
        ...stateSetTo(value === null ? null : { cursor: value }),
        cursor_updated_at: ctx.deps.now().toISOString(),
      })
      .where(and(eq(connectionStreams.id, row.id), eq(connectionStreams.connection_id, input.connection.id)));
    await forgetSentRows(ctx.db, [row.id]);
  }
  return true;
}

/** An invalid cursor would otherwise fail the next run. */
function refuseForeignValue(value: string, place: { row: StreamRow; stream: StreamSchema; field: string }): void {
  const path = place.row.cursor_field ?? place.stream.default_cursor_field;
  const type = place.stream.fields.find((one) => Bun.deepEquals(one.path, path))?.type;
  const fits =
    type === 'integer'
      ? /^-?\d+$/.test(value)
      : type === 'number'
        ? value.trim() !== '' && Number.isFinite(Number(value))
        : type === 'date' || type === 'timestamp' || type === 'timestamp_tz'
          ? /^\d{4}-\d\d-\d\d/.test(value) && !Number.isNaN(Date.parse(value))
          : true;
  if (fits) return;
  throw badRequest('invalid_cursor', `"${value}" is not a valid ${type}`, { field: `${place.field}.value` });
}
