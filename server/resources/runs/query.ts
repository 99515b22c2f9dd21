import { desc, eq, getTableColumns, inArray, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { connectionRuns, networkLogSegments, type StoredWarning, streamRuns, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { PageQuery } from '../../api/wire-types.ts';
import { LIVE_RUN } from '../../pipeline/run-states.ts';

const starter = alias(users, 'starter');
const stopper = alias(users, 'stopper');

interface StreamTotals {
  rows_read: number;
  rows_loaded: number;
  rows_rejected: number;
  bytes_read: number;
  bytes_loaded: number;
  streams_total: number;
  streams_succeeded: number;
  streams_failed: number;
}

const totals = sql<StreamTotals>`(
  select json_build_object(
    'rows_read', coalesce(sum(s.rows_read), 0), 'rows_loaded', coalesce(sum(s.rows_loaded), 0),
    'rows_rejected', coalesce(sum(s.rows_rejected), 0), 'bytes_read', coalesce(sum(s.bytes_read), 0),
    'bytes_loaded', coalesce(sum(s.bytes_loaded), 0), 'streams_total', count(*),
    'streams_succeeded', count(*) filter (where s.status = 'succeeded'),
    'streams_failed', count(*) filter (where s.status = 'failed'))
  from ${streamRuns} s where s.connection_run_id = ${connectionRuns.id})`;

// Not `exists`: PostgreSQL may plan that as a scan of all segments.
const hasLogs = sql<boolean>`coalesce((
  select true from ${networkLogSegments} l where l.connection_run_id = ${connectionRuns.id} limit 1), false)`;

/** Warnings of streams that are being moved. At its end, a run has collected them. */
const liveWarnings = sql<StoredWarning[]>`case when ${inArray(connectionRuns.status, LIVE_RUN)} then coalesce((
  select jsonb_agg(w) from ${streamRuns} s, jsonb_array_elements(s.warnings) w
  where s.connection_run_id = ${connectionRuns.id}), '[]') else '[]' end`;

/** The first run of a chain of reruns; null: the run is no rerun. */
const firstOfChain = sql<string | null>`(
  with recursive chain as (
    select r.id, r.rerun_of_run_id, 1 as depth from connection_runs r where r.id = ${connectionRuns.rerun_of_run_id}
    union all
    select r.id, r.rerun_of_run_id, c.depth + 1 from connection_runs r join chain c on r.id = c.rerun_of_run_id)
  select id from chain order by depth desc limit 1)`;

const runsQuery = (db: Db) =>
  db
    .select({
      run: connectionRuns,
      triggered_by: { id: starter.id, name: starter.full_name, email: starter.email },
      stop_requested_by: { id: stopper.id, name: stopper.full_name, email: stopper.email },
      totals,
      live_warnings: liveWarnings,
      has_network_logs: hasLogs,
      parent_run_id: firstOfChain,
    })
    .from(connectionRuns)
    .leftJoin(starter, eq(starter.id, connectionRuns.triggered_by))
    .leftJoin(stopper, eq(stopper.id, connectionRuns.stop_requested_by));

export type RunRecord = Awaited<ReturnType<typeof runsQuery>>[number];

const NEWEST = [desc(connectionRuns.created_at), desc(connectionRuns.id)];

/**
 * Runs with their totals, newest first, in one statement. With an offset, the ids of the page are selected first:
 * otherwise the totals of skipped runs would be computed too.
 */
export const selectRuns = (db: Db, where: SQL | undefined, page: PageQuery): Promise<RunRecord[]> => {
  const all = runsQuery(db)
    .where(where)
    .orderBy(...NEWEST)
    .$dynamic();
  if (page.offset === 0) return page.limit === undefined ? all : all.limit(page.limit);
  const ids = db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(where)
    .orderBy(...NEWEST)
    .$dynamic();
  const pageIds = page.limit === undefined ? ids.offset(page.offset) : ids.limit(page.limit).offset(page.offset);
  return runsQuery(db)
    .where(inArray(connectionRuns.id, pageIds))
    .orderBy(...NEWEST);
};

const loggedSides = sql<('source' | 'destination')[]>`array(
  select distinct l.connector_type from ${networkLogSegments} l
  where l.connection_run_id = ${streamRuns.connection_run_id} and l.stream_run_id = ${streamRuns.id})`;

/** The log has its own operation. */
const { log: _log, ...streamRunColumns } = getTableColumns(streamRuns);

const streamRunsQuery = (db: Db) =>
  db
    .select({
      stream: streamRunColumns,
      log_lines: sql<number>`jsonb_array_length(${streamRuns.log})`,
      window_start: connectionRuns.window_start,
      window_end: connectionRuns.window_end,
      logged: loggedSides,
    })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id));

export type StreamRunRecord = Awaited<ReturnType<typeof streamRunsQuery>>[number];

/** A run's stream runs by namespace and name, in one statement. */
export const selectStreamRuns = (db: Db, where: SQL | undefined, page: PageQuery): Promise<StreamRunRecord[]> => {
  const query = streamRunsQuery(db)
    .where(where)
    .orderBy(
      sql`coalesce(${streamRuns.namespace}, '') collate "C"`,
      sql`${streamRuns.stream_name} collate "C"`,
      streamRuns.id,
    )
    .offset(page.offset)
    .$dynamic();
  return page.limit === undefined ? query : query.limit(page.limit);
};
