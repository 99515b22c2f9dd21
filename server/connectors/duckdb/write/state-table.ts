import type { DuckDBConnection } from '@duckdb/node-api';
import type { CommittedState, StreamState, WriteCounts, WriteTarget } from '../../contract/connector.ts';
import { FencedError } from '../../contract/errors.ts';
import { STATE_TABLE } from '../read/catalog.ts';
import { execute, query, type Value } from '../connection/engine.ts';
import { identifier, literal, relation } from '../connection/sql.ts';

const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };

/** In the schema of the tables it speaks of, one row a stream: committed together with the stream's rows. */
export async function ensureStateTable(connection: DuckDBConnection, schema: string): Promise<void> {
  await execute(connection, `CREATE SCHEMA IF NOT EXISTS db.${identifier(schema)}`);
  // No key: nobody else writes while we do, and DuckDB's keys take an update for a doubled row.
  await execute(
    connection,
    `CREATE TABLE IF NOT EXISTS ${relation(schema, STATE_TABLE)} (
       connection_id VARCHAR NOT NULL, stream_id VARCHAR NOT NULL, state JSON, state_version BIGINT NOT NULL,
       fence BIGINT NOT NULL, stream_run_id VARCHAR, finished BOOLEAN NOT NULL, counts JSON, updated_at TIMESTAMPTZ NOT NULL)`,
  );
}

export interface StateRow {
  committed: CommittedState | null;
  /** Of this stream run, as committed. */
  counts: WriteCounts;
  /** The stream has committed something here before, in whatever run. */
  known: boolean;
  /**
   * Records a commit inside the open transaction. With null the state stays what it is.
   * @throws FencedError when a newer attempt has claimed the stream.
   */
  record(commit: { state: StreamState | null; counts: WriteCounts; finished: boolean }): Promise<void>;
  /** After the commit: what was recorded counts from now on. */
  settle(): void;
}

const textOrNull = (value: string | null) => (value === null ? 'NULL' : literal(value));

/** Raises the stored fence to the target's, inside the open transaction. @throws FencedError when it is higher. */
export async function claimState(
  connection: DuckDBConnection,
  target: WriteTarget & { schema: string },
): Promise<StateRow> {
  const table = relation(target.schema, STATE_TABLE);
  const own = `connection_id = ${literal(target.connection_id)} AND stream_id = ${literal(target.stream_id)}`;
  const [row] = await query(
    connection,
    `SELECT state, state_version, stream_run_id, finished, counts, fence FROM ${table} WHERE ${own}`,
  );
  if (row && Number(row[5]) > target.fence) throw new FencedError();
  if (row) await execute(connection, `UPDATE ${table} SET fence = ${target.fence} WHERE ${own}`);
  else {
    const values = [literal(target.connection_id), literal(target.stream_id), 0, target.fence, 'false', 'now()'];
    const names = 'connection_id, stream_id, state_version, fence, finished, updated_at';
    await execute(connection, `INSERT INTO ${table} (${names}) VALUES (${values.join(', ')})`);
  }
  const stored = storedState(row ?? [null, '0', null, 'false', null], target);
  const ahead = stored.same_stream_run || stored.state_version > target.state_version;
  // A state older than the control plane's (somebody moved the cursor there) must never come back as the newer one.
  let current = stored.state_version >= target.state_version && stored.state ? JSON.stringify(stored.state) : null;
  let version = Math.max(stored.state_version, target.state_version);
  let recorded = { current, version };
  const record: StateRow['record'] = async (commit) => {
    recorded = commit.state ? { current: JSON.stringify(commit.state), version: version + 1 } : { current, version };
    const changed = await execute(
      connection,
      `UPDATE ${table} SET state = ${textOrNull(recorded.current)}, state_version = ${recorded.version},
              stream_run_id = ${literal(target.stream_run_id)}, finished = ${commit.finished},
              counts = ${literal(JSON.stringify(commit.counts))}, updated_at = now() WHERE ${own} AND fence = ${target.fence}`,
    );
    if (changed === 0) throw new FencedError();
  };
  const settle = () => {
    ({ current, version } = recorded);
  };
  return { committed: ahead ? stored : null, counts: stored.counts, known: row?.[2] != null, record, settle };
}

function storedState([state, version, streamRun, finished, counts]: Value[], target: WriteTarget): CommittedState {
  const sameRun = streamRun === target.stream_run_id;
  return {
    state: state == null ? null : JSON.parse(state),
    state_version: Number(version),
    same_stream_run: sameRun,
    finished: sameRun && finished === 'true',
    counts: { ...NO_COUNTS, ...(sameRun && counts ? JSON.parse(counts) : null) },
  };
}
