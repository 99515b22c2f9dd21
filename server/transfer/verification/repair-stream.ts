import { and, eq, inArray, sql } from 'drizzle-orm';
import { connectionRuns, type StreamRow, type VerificationRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { loadStream } from '../../catalog/resolve-stream.ts';
import { fromSource, onSide } from '../../connector-runtime/side-error.ts';
import { DELETE, UPSERT } from '../../connectors/contract/changes.ts';
import type {
  AnyDestination,
  AnySource,
  Batch,
  Cell,
  LogicalType,
  ReadRequest,
  RowKey,
  Writer,
} from '../../connectors/contract/connector.ts';
import { withoutTrailingZeros } from '../../connectors/cells/decimals.ts';
import { canonicalCell } from '../../connectors/kits/digest/canonical-cell.ts';
import type { Deps } from '../../deps.ts';
import { LIVE_RUN } from '../../pipeline/run-states.ts';
import { planTransfer, readRequest, tableName, type TransferPlan } from '../../pipeline/transfer-plan.ts';
import { targetColumns } from '../column-history.ts';
import { createMapper } from '../mapping.ts';
import type { Difference } from './compare.ts';
import { NotComparable, windowOfConnection } from './comparable.ts';
import type { Ends } from './verify-stream.ts';

/** Keys of one read. */
const KEYS_AT_ONCE = 500;

/** What a repair is about. */
export interface Repair {
  verification: VerificationRow;
  stream: StreamRow;
  differences: Pick<Difference, 'kind' | 'key'>[];
}

/**
 * Loads the rows with these keys again: all of them are deleted and those that the source has are written, in one commit of
 * the destination under a new fence of the stream. An attempt that begins meanwhile makes the commit fail.
 * @throws NotComparable while a run is active, and for streams whose table has more than the rows of the source
 */
export async function repairStream(
  deps: Deps,
  ends: Ends,
  { verification, stream, differences }: Repair,
): Promise<void> {
  const { connection, source, from, to } = ends;
  const [reader, destination] = [from.connector as AnySource, to.connector as AnyDestination];
  const { schema, stream: chosen } = await loadStream(deps, { connection, source, stream });
  const plan = planTransfer({ source: reader, schema, stream: chosen });
  refuseUnrepairable({ destination, stream: chosen, plan });
  await refuseBesideRun(deps.db, connection.id);
  const window = windowOfConnection(connection, schema, chosen);
  const request: ReadRequest = {
    ...readRequest({ plan, schema, stream: { ...chosen, sync_mode: 'full_refresh' }, state: null, window }),
    inexact_values: connection.inexact_values,
  };
  const writer = await onSide('destination', async () =>
    destination.open(to.ctx, {
      schema: connection.destination_schema,
      table: tableName(connection, chosen),
      columns: targetColumns(plan, { stream: chosen }),
      primary_key: plan.primary_key,
      cursor_column: null,
      mode: chosen.destination_sync_mode === 'soft_delete' ? 'soft_delete' : 'append_dedup',
      rejects: null,
      inexact_values: connection.inexact_values,
      connection_id: connection.id,
      stream_id: stream.id,
      connection_run_id: verification.id,
      stream_run_id: verification.id,
      fence: await nextFence(deps.db),
      state_version: stream.state_version,
    }),
  );
  const map = createMapper(plan, deps.secrets.maskKeys(connection.account_id));
  try {
    const keys = differences.map(({ key }) => key);
    for (const some of inParts(keys)) await onSide('destination', () => writer.write(deletions(plan, some)));
    const held = differences.filter(({ kind }) => kind !== 'extra').map(({ key }) => key);
    const rows = reader.reads_keys ? rowsByKeys(ends, request, keys) : rowsAmongAll(ends, request, held);
    for await (const batch of rows) await write(writer, map(batch));
    ends.signal.throwIfAborted();
    await onSide('destination', () => writer.finish(null));
  } catch (error) {
    await writer.abort().catch((failed) => deps.log.warn({ err: failed }, 'writer could not be aborted'));
    throw error;
  }
}

function* inParts(keys: readonly RowKey[]): Generator<RowKey[]> {
  for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) yield keys.slice(at, at + KEYS_AT_ONCE);
}

async function* rowsByKeys({ from }: Ends, request: ReadRequest, keys: readonly RowKey[]): AsyncGenerator<Batch> {
  for (const values of inParts(keys)) {
    const read = { ...request, keys: { paths: request.primary_key, values } };
    yield* fromSource((from.connector as AnySource).read(from.ctx, read));
  }
}

/**
 * Of a source that cannot look keys up, which is read once as a whole.
 * @throws NotComparable when one is not found: its row is gone, or its text is another one
 */
async function* rowsAmongAll(
  { from, source }: Ends,
  request: ReadRequest,
  held: readonly RowKey[],
): AsyncGenerator<Batch> {
  const places = request.primary_key.map((path) =>
    request.columns.findIndex(({ field }) => Bun.deepEquals(field.path, path)),
  );
  const texts = places.map((place) => keyText(request.columns[place]!.field.type));
  const idOf = (key: readonly Cell[]) => JSON.stringify(key.map((cell, at) => texts[at]!(cell)));
  const wanted = new Set(held.map(idOf));
  const missed = new Set(wanted);
  for await (const batch of fromSource((from.connector as AnySource).read(from.ctx, request))) {
    const rows = batch.rows.filter((row) => {
      const id = idOf(places.map((place) => row[place]!));
      missed.delete(id);
      return wanted.has(id);
    });
    yield { ...batch, rows };
  }
  if (missed.size === 0) return;
  const text = `${missed.size} of the rows are no longer found in ${source.name}. Run the connection, and verify it again`;
  throw new NotComparable('source_changed', text);
}

/** As the comparison shows it: numbers of databases too, without zeros at their end. */
const keyText = (type: LogicalType) =>
  type === 'number' ? (cell: Cell) => cell && withoutTrailingZeros(cell) : canonicalCell(type);

async function write(writer: Writer, { rows, bytes }: Batch): Promise<void> {
  if (rows.length === 0) return;
  await onSide('destination', () => writer.write({ rows, bytes, changes: rows.map(() => UPSERT) }));
}

/** Only the cells of the key matter. */
function deletions(plan: TransferPlan, keys: readonly RowKey[]): Batch {
  const places = plan.primary_key.map((name) => plan.columns.findIndex(({ target }) => target.name === name));
  const rows = keys.map((key) => {
    const row: Cell[] = plan.columns.map(() => null);
    for (const [at, place] of places.entries()) row[place] = key[at]!;
    return row;
  });
  return { rows, bytes: 100 * rows.length, changes: rows.map(() => DELETE) };
}

interface Candidate {
  destination: AnyDestination;
  stream: StreamRow;
  plan: TransferPlan;
}

function refuseUnrepairable({ destination, stream, plan }: Candidate): void {
  const isKey = ({ target }: TransferPlan['columns'][number]) => plan.primary_key.includes(target.name);
  const cause = !destination.applies_changes
    ? `${destination.display_name} cannot delete single rows`
    : plan.primary_key.length === 0
      ? `${stream.name} has no key`
      : stream.destination_sync_mode === 'append'
        ? `${stream.name} keeps earlier versions of its rows`
        : plan.columns.some((column) => isKey(column) && (column.pushed !== 'none' || column.masking !== 'none'))
          ? `The key of ${stream.name} is masked`
          : null;
  if (cause === null) return;
  const remedy =
    stream.destination_sync_mode === 'overwrite'
      ? 'The next run of the connection replaces all rows'
      : 'Reset the stream to load all rows again';
  throw new NotComparable('repair_not_supported', `${cause}. ${remedy}`);
}

/** A run would read and write the same rows. One that starts later raises the fence above that of the repair. */
async function refuseBesideRun(db: Db, connection_id: string): Promise<void> {
  const [active] = await db
    .select({ number: connectionRuns.number })
    .from(connectionRuns)
    .where(and(eq(connectionRuns.connection_id, connection_id), inArray(connectionRuns.status, LIVE_RUN)))
    .limit(1);
  if (active) {
    const text = `Run ${active.number} is active. Repair when it has ended; pause the connection if it is continuous`;
    throw new NotComparable('run_already_active', text);
  }
}

async function nextFence(db: Db): Promise<number> {
  const [row] = await db.execute<{ fence: string }>(sql`select nextval('stream_run_fence') as fence`);
  if (!row) throw new Error('the sequence returned no value');
  return Number(row.fence);
}
