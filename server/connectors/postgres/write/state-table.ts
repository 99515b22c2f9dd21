import type { CommittedState, StreamState, WriteCounts, WriteTarget } from '../../contract/connector.ts';
import { FencedError } from '../../contract/errors.ts';
import type { PgSession, Row } from '../connection/session.ts';
import { identifier, relation } from '../connection/sql.ts';

/** In the schema of the tables it speaks of, one row a stream: committed together with the stream's rows. */
export const STATE_TABLE = '_pipeline_state';

const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };

/** Makes what is missing. Call it in a transaction that holds `lockDefinitions`. */
export async function ensureStateTable(session: PgSession, schema: string): Promise<void> {
  const { rows } = await session.query(
    `select (select oid from pg_namespace where nspname = $1),
            (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2)`,
    [schema, STATE_TABLE],
  );
  const [[schemaOid, tableOid] = [null, null]] = rows;
  // Not "if not exists": that asks for the right to create even when there is nothing to be created.
  if (schemaOid === null) await session.query(`create schema ${identifier(schema)}`);
  if (tableOid !== null) return;
  await session.query(
    `create table ${relation(schema, STATE_TABLE)} (
       connection_id text not null, stream_id text not null, state jsonb, state_version bigint not null default 0,
       fence bigint not null, stream_run_id text, finished boolean not null default false, counts jsonb,
       updated_at timestamptz not null default now(), primary key (connection_id, stream_id))`,
  );
}

/** Streams open side by side: whoever defines something in the schema waits for the others. Until the commit. */
export async function lockDefinitions(session: PgSession, schema: string): Promise<void> {
  await session.query("select pg_advisory_xact_lock(hashtextextended('data-pipelines:' || $1, 0))", [schema], {
    slow: true,
  });
}

export interface StateRow {
  committed: CommittedState | null;
  /** Of this stream run, as committed. */
  counts: WriteCounts;
  /**
   * Records a commit inside the open transaction. With null the state stays what it is.
   * @throws FencedError when a newer attempt has claimed the stream.
   */
  record(commit: { state: StreamState | null; counts: WriteCounts; finished: boolean }): Promise<void>;
}

/** Raises the stored fence to the target's. @throws FencedError when it is higher already. */
export async function claimState(session: PgSession, target: WriteTarget & { schema: string }): Promise<StateRow> {
  const table = relation(target.schema, STATE_TABLE);
  const key = [target.connection_id, target.stream_id, String(target.fence)];
  await session.query(
    `insert into ${table} (connection_id, stream_id, fence) values ($1, $2, $3) on conflict do nothing`,
    key,
  );
  const { rows } = await session.query(
    `update ${table} set fence = $3 where connection_id = $1 and stream_id = $2 and fence <= $3
      returning state::text, state_version, stream_run_id, finished, counts::text`,
    key,
  );
  if (!rows[0]) throw new FencedError();
  const stored = storedState(rows[0], target);
  const ahead = stored.same_stream_run || stored.state_version > target.state_version;
  // A state older than the control plane's (somebody moved the cursor there) must never come back as the newer one.
  let current = stored.state_version >= target.state_version && stored.state ? JSON.stringify(stored.state) : null;
  let version = Math.max(stored.state_version, target.state_version);
  const record: StateRow['record'] = async (commit) => {
    const next = commit.state ? JSON.stringify(commit.state) : current;
    const nextVersion = commit.state ? version + 1 : version;
    const { count } = await session.query(
      `update ${table} set state = $4::jsonb, state_version = $5, stream_run_id = $6, finished = $7, counts = $8::jsonb,
              updated_at = now() where connection_id = $1 and stream_id = $2 and fence = $3`,
      [...key, next, String(nextVersion), target.stream_run_id, String(commit.finished), JSON.stringify(commit.counts)],
    );
    if (count === 0) throw new FencedError();
    [current, version] = [next, nextVersion];
  };
  return { committed: ahead ? stored : null, counts: stored.counts, record };
}

function storedState([state, version, streamRun, finished, counts]: Row, target: WriteTarget): CommittedState {
  const sameRun = streamRun === target.stream_run_id;
  return {
    state: state == null ? null : JSON.parse(state),
    state_version: Number(version),
    same_stream_run: sameRun,
    finished: sameRun && finished === 't',
    counts: { ...NO_COUNTS, ...(sameRun && counts ? JSON.parse(counts) : null) },
  };
}
