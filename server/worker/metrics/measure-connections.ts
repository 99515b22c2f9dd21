import { sql } from 'drizzle-orm';
import type { Deps } from '../../deps.ts';
import type { Schedule } from '../../pipeline/schedule.ts';
import type { MetricFamily } from '../../platform/metrics.ts';
import { minutesLate } from '../data-delays.ts';

/** Series per family. Connections beyond it are counted, not shown. */
const MAX_CONNECTIONS = 500;

interface Measured extends Record<string, unknown> {
  id: string;
  account_id: string;
  name: string;
  status: string;
  source: string;
  destination: string;
  schedule: Schedule;
  since: string;
  last_success: number | null;
  lag: number;
  failures: number;
  retained: number | null;
  unread: number | null;
  run_seconds: number | null;
  run_rows: number | null;
  run_bytes: number | null;
}

const MEASURES: [name: string, help: string, of: (row: Measured, now: Date) => number | null][] = [
  ['last_success_timestamp_seconds', 'When a run last succeeded.', (row) => row.last_success],
  ['lag_seconds', 'Age of the data: time since a run last succeeded, or since the schedule began.', (row) => row.lag],
  [
    'overdue_seconds',
    'How late data is by the schedule, once two runs and twice the interval were missed; 0: on time.',
    ({ status, schedule, since }, now) => {
      const from = new Date(since);
      return status === 'active' ? 60 * (minutesLate(schedule, { from, now }) ?? 0) : 0;
    },
  ],
  ['consecutive_failures', 'Runs that failed since the last success.', (row) => row.failures],
  ['last_run_duration_seconds', 'Duration of the last run.', (row) => row.run_seconds],
  ['last_run_rows', 'Rows that the last run loaded.', (row) => row.run_rows],
  ['last_run_bytes', 'Bytes that the last run loaded.', (row) => row.run_bytes],
  ['cdc_retained_wal_bytes', 'Log that the source keeps until it is read.', (row) => row.retained],
  [
    'cdc_lag_seconds',
    'Age of the newest change that was read from the log of the source, or time since it was last read.',
    (row) => (row.retained === null ? null : (row.unread ?? row.lag)),
  ],
];

/** Families with one series per connection. Names are shown only to scrapers with a key. */
export async function measureConnections({
  db,
  config,
  now,
}: Pick<Deps, 'db' | 'config' | 'now'>): Promise<MetricFamily[]> {
  const rows = await db.execute<Measured>(selectConnections());
  const [counted] = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from connections where deleted_at is null`,
  );
  const at = now();
  const series = MEASURES.map(([name, help, of]) => ({
    name: `datapipelines_connection_${name}`,
    help,
    type: 'gauge' as const,
    values: rows.flatMap((row) => {
      const value = of(row, at);
      return value === null ? [] : [{ labels: { connection_id: row.id }, value }];
    }),
  }));
  const info = rows.map(({ id, account_id, name, source, destination }) => ({
    labels: { connection_id: id, ...(config.METRICS_TOKEN === null ? {} : { account_id, name, source, destination }) },
    value: 1,
  }));
  return [
    { name: 'datapipelines_connection_info', help: 'Connections by id.', type: 'gauge', values: info },
    ...series,
    {
      name: 'datapipelines_connections_not_shown',
      help: 'Connections beyond those that have series of their own.',
      type: 'gauge',
      values: [{ value: Math.max(0, (counted?.count ?? 0) - rows.length) }],
    },
  ];
}

/** The oldest connections, so that the same ones are shown each time, with the last run that moved rows. */
const selectConnections = () => sql`
  select c.id, c.account_id, c.name, c.status, c.schedule, s.name as source, d.name as destination,
    greatest(c.last_succeeded_at, c.ticking_since)::text as since,
    extract(epoch from c.last_succeeded_at)::float as last_success,
    greatest(0, extract(epoch from now() - coalesce(c.last_succeeded_at, c.ticking_since)))::float as lag,
    c.consecutive_failures as failures,
    (select max(r.lag_bytes)::float from change_readers r join connection_streams cs on cs.id = r.stream_id
      where cs.connection_id = c.id) as retained,
    (select max(r.lag_seconds + extract(epoch from now() - r.lag_measured_at))::float
      from change_readers r join connection_streams cs on cs.id = r.stream_id where cs.connection_id = c.id) as unread,
    extract(epoch from last.finished_at - last.started_at)::float as run_seconds, moved.rows as run_rows, moved.bytes as run_bytes
  from connections c
    join account_connectors s on s.id = c.source_id
    join account_connectors d on d.id = c.destination_id
    left join lateral (
      select r.id, r.status, r.started_at, r.finished_at from connection_runs r
      where r.connection_id = c.id and r.finished_at is not null and r.started_at is not null
      order by r.created_at desc, r.id desc limit 1) last on true
    left join lateral (
      select coalesce(sum(rows_loaded), 0)::float as rows, coalesce(sum(bytes_loaded), 0)::float as bytes
      from stream_runs where connection_run_id = last.id) moved on last.id is not null
  where c.deleted_at is null
  order by c.id limit ${MAX_CONNECTIONS}`;
