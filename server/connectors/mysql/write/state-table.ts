import type { CommittedState, StreamState, WriteCounts, WriteTarget } from '../../contract/connector.ts';
import { FencedError } from '../../contract/errors.ts';
import type { MysqlSession, Row } from '../connection/session.ts';
import { identifier, literal, relation } from '../connection/sql.ts';
import { tableOptions } from './tables.ts';

/** In the database of the tables it speaks of, one row a stream: committed together with the stream's rows. */
export const STATE_TABLE = '_pipeline_state';

const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };

/**
 * A table that is being made aside. `loading`: nothing of it counts, whoever comes next drops it. `swapping`: its rows
 * are committed, whoever comes next puts it into the place of the table.
 */
export interface PendingTable {
  name: string;
  /** Whose place it takes. */
  table: string;
  phase: 'loading' | 'swapping';
}

/** Makes what is missing. Call it under `lockDefinitions`. */
export async function ensureStateTable(session: MysqlSession, schema: string): Promise<void> {
  const { rows } = await session.query(
    `select (select count(*) from information_schema.schemata where schema_name = ${literal(schema)}),
            (select count(*) from information_schema.tables where table_schema = ${literal(schema)}
               and table_name = ${literal(STATE_TABLE)})`,
  );
  const [[schemas, tables] = []] = rows;
  // Not "if not exists": that asks for the right to create even when there is nothing to be created.
  if (schemas === '0') await session.query(`create database ${identifier(schema)} default character set utf8mb4`);
  if (tables !== '0') return;
  await session.query(
    `create table ${relation(schema, STATE_TABLE)} (
       connection_id varchar(255) not null, stream_id varchar(255) not null, state longtext null,
       state_version bigint not null default 0, fence bigint not null, stream_run_id varchar(255) null,
       finished tinyint(1) not null default 0, counts longtext null, pending_table longtext null,
       updated_at datetime(6) not null default current_timestamp(6), primary key (connection_id, stream_id)
     ) ${tableOptions(session.version)}`,
  );
}

/** Streams open side by side: whoever defines something in the database waits for the others meanwhile. */
export async function lockDefinitions<Result>(
  session: MysqlSession,
  schema: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const name = `concat('data-pipelines:', left(sha2(${literal(schema)}, 256), 40))`;
  await session.query(`select get_lock(${name}, 600)`, { slow: true });
  const result = await work();
  // After an error the session is closed, which lets go of the lock as well.
  await session.query(`select release_lock(${name})`);
  return result;
}

export interface StateRow {
  committed: CommittedState | null;
  /** Of this stream run, as committed. */
  counts: WriteCounts;
  /** What an earlier attempt left. */
  pending: PendingTable | null;
  /**
   * Records a commit inside the open transaction. With null the state stays what it is.
   * @throws FencedError when a newer attempt has claimed the stream.
   */
  record(commit: {
    state: StreamState | null;
    counts: WriteCounts;
    finished: boolean;
    pending: PendingTable | null;
  }): Promise<void>;
  /** Notes the pending table, in a transaction of its own. @throws FencedError as above. */
  note(pending: PendingTable | null): Promise<void>;
}

/** Raises the stored fence to the target's. @throws FencedError when it is higher already. */
export async function claimState(session: MysqlSession, target: WriteTarget & { schema: string }): Promise<StateRow> {
  const table = relation(target.schema, STATE_TABLE);
  const key = `connection_id = ${literal(target.connection_id)} and stream_id = ${literal(target.stream_id)}`;
  const values = [literal(target.connection_id), literal(target.stream_id), target.fence].join(', ');
  await session.query(`insert ignore into ${table} (connection_id, stream_id, fence) values (${values})`);
  await session.query('start transaction');
  const columns = 'fence, state, state_version, stream_run_id, finished, counts, pending_table';
  const { rows } = await session.query(`select ${columns} from ${table} where ${key} for update`);
  const [row] = rows;
  if (!row || BigInt(row[0]!) > BigInt(target.fence)) throw new FencedError();
  await session.query(`update ${table} set fence = ${target.fence} where ${key}`);
  await session.query('commit');
  const update = async (assignments: string[]) => {
    // Rows changed are counted, not rows found: so the fence is looked at first.
    const found = await session.query(`select fence from ${table} where ${key} for update`);
    if (found.rows[0]?.[0] !== String(target.fence)) throw new FencedError();
    await session.query(`update ${table} set ${assignments.join(', ')}, updated_at = utc_timestamp(6) where ${key}`);
  };
  return stateRow({ row, target, session, update });
}

function stateRow(claimed: {
  row: Row;
  target: WriteTarget;
  session: MysqlSession;
  update(assignments: string[]): Promise<void>;
}): StateRow {
  const { row, target, session, update } = claimed;
  const stored = storedState(row, target);
  const ahead = stored.same_stream_run || stored.state_version > target.state_version;
  // A state older than the control plane's (somebody moved the cursor there) must never come back as the newer one.
  let current = stored.state_version >= target.state_version && stored.state ? JSON.stringify(stored.state) : null;
  let version = Math.max(stored.state_version, target.state_version);
  return {
    committed: ahead ? stored : null,
    counts: stored.counts,
    pending: row[6] ? (JSON.parse(row[6]) as PendingTable) : null,
    async record(commit) {
      const next = commit.state ? JSON.stringify(commit.state) : current;
      const nextVersion = commit.state ? version + 1 : version;
      await update([
        `state = ${textOrNull(next)}`,
        `state_version = ${nextVersion}`,
        `stream_run_id = ${literal(target.stream_run_id)}`,
        `finished = ${commit.finished ? 1 : 0}`,
        `counts = ${literal(JSON.stringify(commit.counts))}`,
        pendingSql(commit.pending),
      ]);
      [current, version] = [next, nextVersion];
    },
    async note(pending) {
      await session.query('start transaction');
      await update([pendingSql(pending)]);
      await session.query('commit');
    },
  };
}

const textOrNull = (text: string | null) => (text === null ? 'null' : literal(text));
const pendingSql = (pending: PendingTable | null) =>
  `pending_table = ${textOrNull(pending && JSON.stringify(pending))}`;

function storedState([, state, version, streamRun, finished, counts]: Row, target: WriteTarget): CommittedState {
  const sameRun = streamRun === target.stream_run_id;
  return {
    state: state == null ? null : JSON.parse(state),
    state_version: Number(version),
    same_stream_run: sameRun,
    finished: sameRun && finished === '1',
    counts: { ...NO_COUNTS, ...(sameRun && counts ? JSON.parse(counts) : null) },
  };
}
