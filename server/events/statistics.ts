import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';

const LAST_RUNS = 30;
/** Fewer runs do not show what is usual. */
const RUNS_FOR_ZSCORE = 5;
/** The deviation counts as at least 1 % of the mean and one row or millisecond: else any change of a steady value is huge. */
const MIN_SHARE = 0.01;
const MIN_DEVIATION = 1;

/** Mean, sample standard deviation, and distance from the mean in deviations; null with too few runs. */
export interface RunStatistics {
  duration_ms_mean: number | null;
  duration_ms_std: number | null;
  duration_ms_zscore: number | null;
  rows_loaded_mean: number | null;
  rows_loaded_std: number | null;
  rows_loaded_zscore: number | null;
}

type RunSums = {
  runs: number;
  duration_mean: number | null;
  duration_std: number | null;
  rows_mean: number | null;
  rows_std: number | null;
};

type StreamSums = { runs: number; mean: number | null; std: number | null };

interface RunOfStatistics {
  id: string;
  connection_id: string;
}

/** Durations and rows of the last 30 successful plain runs of a connection, without the run itself. */
const sumsOfRuns = (run: RunOfStatistics) => sql`(
  select count(*)::int as runs,
    avg(duration)::float8 as duration_mean, stddev_samp(duration)::float8 as duration_std,
    avg(rows)::float8 as rows_mean, stddev_samp(rows)::float8 as rows_std
  from (
    select extract(epoch from r.finished_at - r.started_at) * 1000 as duration,
      (select coalesce(sum(s.rows_loaded), 0) from stream_runs s where s.connection_run_id = r.id) as rows
    from connection_runs r
    where r.connection_id = ${run.connection_id} and r.id <> ${run.id}
      and r.status = 'succeeded' and r.run_type = 'plain'
    order by r.created_at desc, r.id desc limit ${LAST_RUNS}
  ) last)`;

/** The same for the rows of one stream of the runs. */
const sumsOfStream = (run: RunOfStatistics, stream_id: string) => sql`(
  select count(*)::int as runs, avg(rows)::float8 as mean, stddev_samp(rows)::float8 as std
  from (
    select s.rows_loaded as rows
    from connection_runs r
    join stream_runs s on s.connection_run_id = r.id and s.stream_id = ${stream_id} and s.status = 'succeeded'
    where r.connection_id = ${run.connection_id} and r.id <> ${run.id}
      and r.status = 'succeeded' and r.run_type = 'plain'
    order by r.created_at desc, r.id desc limit ${LAST_RUNS}
  ) last)`;

/** What is usual for a run and one stream of it. */
export interface Usual {
  run: RunSums;
  stream: StreamSums;
}

/** Both in one statement. */
export async function readUsual(db: Db, run: RunOfStatistics, stream_id: string): Promise<Usual> {
  const [found] = await db.execute<Usual & Record<string, unknown>>(sql`
    select row_to_json(run) as run, row_to_json(stream) as stream
    from ${sumsOfRuns(run)} run, ${sumsOfStream(run, stream_id)} stream`);
  if (!found) throw new Error('the aggregates returned no row');
  return found;
}

/** Compares a run with what is usual for its connection. */
export async function runStatistics(
  db: Db,
  run: RunOfStatistics & { duration_ms: number | null; rows_loaded: number },
  usual?: RunSums,
): Promise<RunStatistics> {
  const sums = usual ?? (await db.execute<RunSums>(sql`select * from ${sumsOfRuns(run)} run`))[0];
  if (!sums) throw new Error('the aggregate returned no row');
  return {
    duration_ms_mean: sums.duration_mean,
    duration_ms_std: sums.duration_std,
    duration_ms_zscore: zscore(run.duration_ms, { runs: sums.runs, mean: sums.duration_mean, std: sums.duration_std }),
    rows_loaded_mean: sums.rows_mean,
    rows_loaded_std: sums.rows_std,
    rows_loaded_zscore: zscore(run.rows_loaded, { runs: sums.runs, mean: sums.rows_mean, std: sums.rows_std }),
  };
}

/** The same for the rows of one stream of the run. */
export async function streamRowsZscore(
  db: Db,
  stream: { stream_id: string; connection_id: string; connection_run_id: string; rows_loaded: number },
  usual?: StreamSums,
): Promise<number | null> {
  const { connection_run_id: id, connection_id, stream_id } = stream;
  const of = sumsOfStream({ id, connection_id }, stream_id);
  const sums = usual ?? (await db.execute<StreamSums>(sql`select * from ${of} stream`))[0];
  return sums ? zscore(stream.rows_loaded, sums) : null;
}

function zscore(value: number | null, of: { runs: number; mean: number | null; std: number | null }): number | null {
  if (value === null || of.mean === null || of.std === null || of.runs < RUNS_FOR_ZSCORE) return null;
  return (value - of.mean) / Math.max(of.std, Math.abs(of.mean) * MIN_SHARE, MIN_DEVIATION);
}
