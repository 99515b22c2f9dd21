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
  ReadRequest,
  RowKey,
  Writer,
} from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';
import { LIVE_RUN } from '../../pipeline/run-states.ts';
import { planTransfer, readRequest, tableName, type TransferPlan } from '../../pipeline/transfer-plan.ts';
import { targetColumns } from '../column-history.ts';
import { createMapper } from '../mapping.ts';
import { NotComparable, windowOfConnection } from './comparable.ts';
import type { Ends } from './verify-stream.ts';

/** Keys of one read. */
const KEYS_AT_ONCE = 500;

/** What a repair is about. */
export interface Repair {
  verification: VerificationRow;
  stream: StreamRow;
  keys: RowKey[];
}

/**
 * Loads the rows with these keys again: all of them are deleted and those that the source has are written, in one commit of
 * the destination under a new fence of the stream. An attempt that begins meanwhile makes the commit fail.
 * @throws NotComparable while a run is active, and for streams whose table has more than the rows of the source
 */
export async function repairStream(deps: Deps, ends: Ends, { verification, stream, keys }: Repair): Promise<void> {
  const { connection, source, from, to } = ends;
  const [reader, destination] = [from.connector as AnySource, to.connector as AnyDestination];
  const { schema, stream: chosen } = await loadStream(deps, { connection, source, stream });
  const plan = planTransfer({ source: reader, schema, stream: chosen });
  refuseUnrepairable({ reader, destination, stream: chosen, plan });
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
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
      const some = keys.slice(at, at + KEYS_AT_ONCE);
      await onSide('destination', () => writer.write(deletions(plan, some)));
      const read = { ...request, keys: { paths: request.primary_key, values: some } };
      for await (const batch of fromSource(reader.read(from.ctx, read))) await write(writer, map(batch));
    }
    ends.signal.throwIfAborted();
    await onSide('destination', () => writer.finish(null));
  } catch (error) {
    await writer.abort().catch((failed) => deps.log.warn({ err: failed }, 'writer could not be aborted'));
    throw error;
  }
}

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
  reader: AnySource;
  destination: AnyDestination;
  stream: StreamRow;
  plan: TransferPlan;
}

function refuseUnrepairable({ reader, destination, stream, plan }: Candidate): void {
  const isKey = ({ target }: TransferPlan['columns'][number]) => plan.primary_key.includes(target.name);
  const cause = !reader.reads_keys
    ? `${reader.display_name} cannot read single rows`
    : !destination.applies_changes
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
