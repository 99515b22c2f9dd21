import type { PublishedStream, PublishGroup, TargetColumn } from '../../../contract/connector.ts';
import { ConfigurationError, FencedError } from '../../../contract/errors.ts';
import type { SqlDatabase } from '../dialect.ts';
import { REJECTED_TABLE } from '../rejects.ts';
import { isTrue, NO_COUNTS, type StateRow, STATE_TABLE } from '../state-row.ts';
import { type ExistingTable, type PlacedTarget, resolveTarget, type Target } from '../target.ts';

/** Column of `_pipeline_state` for a new table that is complete and not published; null: there is none. */
export const READY = 'ready';

/** A table that waits to be published, as `_pipeline_state` describes it. Committed together with the table. */
export interface ReadyTable {
  publish_with: string;
  stream_run_id: string;
  /** The new table. */
  fresh: string;
  /** The table that it replaces. */
  table: string;
  columns: TargetColumn[];
  primary_key: string[];
  /** Absent: an earlier version wrote this. */
  inexact_values?: 'refuse' | 'allow';
  /** Only where publishing is no transaction: it has begun, and there is an old table or not. */
  replaces?: boolean;
}

export const readyTable = (target: PlacedTarget, fresh: string): ReadyTable => ({
  publish_with: target.publish_with!,
  stream_run_id: target.stream_run_id,
  fresh,
  table: target.table,
  columns: target.columns,
  primary_key: target.primary_key,
  inexact_values: target.inexact_values,
});

export const parseReady = (text: string | null | undefined): ReadyTable | null =>
  text == null ? null : (JSON.parse(text) as ReadyTable);

/** Keeps a table that an earlier attempt of the same run has completed, and removes any other. */
export async function resumeReady(db: SqlDatabase, state: StateRow, target: PlacedTarget): Promise<void> {
  const left = parseReady(state.extra[READY]);
  if (!left) return;
  const isOwn = left.stream_run_id === target.stream_run_id && left.publish_with === target.publish_with;
  if (isOwn && state.committed) {
    state.committed.ready = true;
    return;
  }
  await dropReady(db, target.schema, left);
  if (left.stream_run_id !== target.stream_run_id) return state.note({ [READY]: null });
  await state.forget({ [READY]: null });
  Object.assign(state, { committed: null, counts: NO_COUNTS, changed: {} });
}

/** The rows that could not be loaded belong to the table that is removed. */
async function dropReady({ session, dialect }: SqlDatabase, schema: string, left: ReadyTable): Promise<void> {
  await session.query(`drop table if exists ${dialect.relation(schema, left.fresh)}`);
  const { rows } = await session.query(dialect.findNames(schema, REJECTED_TABLE));
  if (rows[0]?.[1] == null) return;
  await session.query(
    `delete from ${dialect.relation(schema, REJECTED_TABLE)} where stream_run_id = ${dialect.literal(left.stream_run_id)}`,
  );
}

export type PlacedGroup = PublishGroup & { schema: string };

interface StoredState {
  fence: number;
  stream_run_id: string | null;
  finished: boolean;
  ready: ReadyTable | null;
}

/** The rows of `_pipeline_state` of these streams. */
export function ofStreams({ dialect }: Pick<SqlDatabase, 'dialect'>, group: PlacedGroup): string {
  const ids = group.streams.map(({ stream_id }) => dialect.literal(stream_id)).join(', ');
  return `connection_id = ${dialect.literal(group.connection_id)} and stream_id in (${ids})`;
}

const stateTable = ({ dialect }: Pick<SqlDatabase, 'dialect'>, { schema }: PlacedGroup) =>
  dialect.relation(schema, STATE_TABLE);

async function lockStates(db: SqlDatabase, group: PlacedGroup): Promise<Map<string, StoredState>> {
  const { rows } = await db.session.query(
    `select stream_id, fence, stream_run_id, finished, ${READY} from ${stateTable(db, group)}
      where ${ofStreams(db, group)} order by stream_id${db.dialect.forUpdate}`,
  );
  return new Map(
    rows.map(([stream_id, fence, stream_run_id, finished, ready]) => [
      stream_id!,
      {
        fence: Number(fence),
        stream_run_id: stream_run_id ?? null,
        finished: isTrue(finished),
        ready: parseReady(ready),
      },
    ]),
  );
}

/**
 * The complete tables of a group, in the open transaction. Null: an earlier call has published them.
 * @throws FencedError, ConfigurationError `table_not_ready`
 */
export async function readyTables(db: SqlDatabase, group: PlacedGroup): Promise<ReadyTable[] | null> {
  const states = await lockStates(db, group);
  const isPublished = ({ stream_id, stream_run_id }: PublishedStream) => {
    const state = states.get(stream_id);
    return state?.stream_run_id === stream_run_id && state.finished && state.ready === null;
  };
  if (group.streams.every(isPublished)) return null;
  return group.streams.map((stream) => {
    const state = states.get(stream.stream_id);
    if (!state || state.fence !== stream.fence) throw new FencedError(state?.fence ?? null);
    const { ready } = state;
    if (ready?.stream_run_id === stream.stream_run_id && ready.publish_with === group.publish_with) return ready;
    throw notReady(group.schema);
  });
}

export const notReady = (schema: string) =>
  new ConfigurationError(
    'table_not_ready',
    `The new rows of a stream of the run are no longer in the schema ${schema}, so none of its tables can be published. Run the connection again`,
  );

/** Records in the open transaction that the tables of the group are visible. */
export async function recordPublished(db: SqlDatabase, group: PlacedGroup): Promise<void> {
  await db.session.query(
    `update ${stateTable(db, group)} set finished = true, ${READY} = null, updated_at = ${db.dialect.now}
      where ${ofStreams(db, group)}`,
  );
}

/** In the open transaction: also takes the streams out of the hands of attempts with an older fence. */
export async function discardReady(db: SqlDatabase, group: PlacedGroup): Promise<void> {
  const { session, dialect } = db;
  const { rows } = await session.query(dialect.findNames(group.schema, STATE_TABLE));
  // Nothing was ever opened here.
  if (rows[0]?.[1] == null) return;
  const states = await lockStates(db, group);
  for (const stream of group.streams) {
    const state = states.get(stream.stream_id);
    if (!state || state.fence > stream.fence) continue;
    const left = state.ready?.stream_run_id === stream.stream_run_id ? state.ready : null;
    if (left) await dropReady(db, group.schema, left);
    await session.query(
      `update ${stateTable(db, group)} set fence = ${stream.fence}${left ? `, ${READY} = null` : ''}
        where ${ofStreams(db, { ...group, streams: [stream] })}`,
    );
  }
}

/** The target of a table that is published, whose stream no writer has open. */
export function publishedTarget<Table extends ExistingTable>(
  dialect: SqlDatabase['dialect'],
  { schema, connection_id, publish_with }: PlacedGroup,
  { ready, old }: { ready: ReadyTable; old: Table | null },
): Target<Table> {
  const { table, columns, primary_key, stream_run_id, inexact_values } = ready;
  const target = {
    schema,
    table,
    columns,
    primary_key,
    publish_with,
    connection_id,
    stream_run_id,
    inexact_values,
    mode: 'overwrite' as const,
    cursor_column: null,
    stream_id: '',
    connection_run_id: '',
    fence: 0,
    state_version: 0,
  };
  return resolveTarget(dialect, target, old);
}
