import { sql } from 'drizzle-orm';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { LIVE_RUN, LIVE_STREAM } from '../../pipeline/run-states.ts';
import type { MetricFamily } from '../../platform/metrics.ts';
import { queueDepths } from '../../queue/queue-depth.ts';
import { fencedAttempts } from '../../runs/claim-stream.ts';
import { measureConnections } from './measure-connections.ts';

/** The API answers within its own limits; a scrape has to end before the next one begins. */
const WITHIN_MS = 5_000;

type Values = MetricFamily['values'];

const gauge = (name: string, help: string, values: Values): MetricFamily => ({
  name: `datapipelines_${name}`,
  help,
  type: 'gauge',
  values,
});

/**
 * What the control database knows, equal in all processes that show it. When it does not answer, only `database_up` is
 * left: the other metrics are wanted most at that moment.
 */
export async function measureInstallation(deps: Deps): Promise<MetricFamily[]> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), WITHIN_MS);
  const measured = measureAll(deps).catch((error: unknown) => {
    deps.log.warn({ err: error }, 'metrics of the control database could not be measured');
    return null;
  });
  const families = await Promise.race([measured, late.promise]).finally(() => clearTimeout(timer));
  const value = families === null ? 0 : 1;
  return [gauge('database_up', 'Whether the control database answers.', [{ value }]), ...(families ?? [])];
}

async function measureAll(deps: Deps): Promise<MetricFamily[]> {
  const { db } = deps;
  return [
    ...(await stateFamilies(db)),
    ...(await queueFamilies(db)),
    ...(await eventFamilies(db)),
    ...(await serverFamilies(db)),
    ...(await measureConnections(deps)),
    {
      name: 'datapipelines_stream_attempts_fenced_total',
      help: 'Attempts at streams that ended because a newer one had claimed the stream.',
      type: 'counter',
      values: [{ value: await fencedAttempts(db) }],
    },
  ];
}

interface Counted extends Record<string, unknown> {
  family: string;
  state: string;
  count: number;
}

/** Live runs and streams are counted by partial indexes. States without a row are 0, so that they never vanish. */
async function stateFamilies(db: Db): Promise<MetricFamily[]> {
  const rows = await db.execute<Counted>(sql`
    select 'runs' as family, status as state, count(*)::int as count from connection_runs
      where status in (${list(LIVE_RUN)}) group by status
    union all
    select 'streams', status, count(*)::int from stream_runs where status in (${list(LIVE_STREAM)}) group by status
    union all
    select 'connections', status, count(*)::int from connections where deleted_at is null group by status
    union all
    select 'sides', connector_type || ' ' || status, count(*)::int from account_connectors
      where deleted_at is null group by connector_type, status`);
  const of = (family: string) => rows.filter((row) => row.family === family);
  const byState = (family: string, known: readonly string[]): Values =>
    [...new Set([...known, ...of(family).map(({ state }) => state)])].map((state) => ({
      labels: { state },
      value: of(family).find((row) => row.state === state)?.count ?? 0,
    }));
  return [
    gauge('runs', 'Runs that have not ended.', byState('runs', LIVE_RUN)),
    gauge('stream_runs', 'Streams of runs that have not ended.', byState('streams', LIVE_STREAM)),
    gauge('connections', 'Connections.', byState('connections', ['active', 'paused', 'auto_disabled', 'locked'])),
    gauge(
      'account_connectors',
      'Sources and destinations.',
      of('sides').map(({ state, count }) => {
        const [type = '', status = ''] = state.split(' ');
        return { labels: { type, state: status }, value: count };
      }),
    ),
  ];
}

const list = (values: readonly string[]) =>
  sql.join(
    values.map((value) => sql`${value}`),
    sql`, `,
  );

async function queueFamilies(db: Db): Promise<MetricFamily[]> {
  const depths = await queueDepths(db);
  const jobs = depths.flatMap(({ queue, due, planned, active }) =>
    Object.entries({ due, planned, active }).map(([state, value]) => ({ labels: { queue, state }, value })),
  );
  const ages = depths.map(({ queue, oldest_due_seconds }) => ({ labels: { queue }, value: oldest_due_seconds }));
  return [
    gauge('queue_jobs', 'Jobs in the queue. A free worker would take those that are due.', jobs),
    gauge('queue_oldest_age_seconds', 'How long the oldest job that is due has been waiting.', ages),
  ];
}

async function eventFamilies(db: Db): Promise<MetricFamily[]> {
  const [row] = await db.execute<Record<'events' | 'age' | 'deliveries' | 'late' | 'cases', number>>(sql`
    select e.events, e.age, d.deliveries, d.late,
      (select count(*)::int from cases where status in ('open', 'acknowledged')) as cases
    from (select count(*)::int as events,
            coalesce(extract(epoch from now() - min(occurred_at)), 0)::float as age
          from events where processing_status in ('received', 'evaluating')) e,
         (select count(*)::int as deliveries,
            coalesce(extract(epoch from now() - least(min(next_attempt_at), now())), 0)::float as late
          from deliveries where status in ('pending', 'retrying')) d`);
  if (!row) return [];
  return [
    gauge('events_waiting', 'Events that no trigger has been compared with.', [{ value: row.events }]),
    gauge('events_oldest_age_seconds', 'Age of the oldest of these events.', [{ value: row.age }]),
    gauge('deliveries_waiting', 'Actions of triggers that have not ended.', [{ value: row.deliveries }]),
    gauge('deliveries_overdue_seconds', 'How long the next attempt at one of them has been due.', [
      { value: row.late },
    ]),
    gauge('cases_open', 'Cases that are open or acknowledged.', [{ value: row.cases }]),
  ];
}

/** The PostgreSQL server, which may serve other databases as well. */
async function serverFamilies(db: Db): Promise<MetricFamily[]> {
  const [row] = await db.execute<Record<'used' | 'allowed' | 'bytes', number>>(sql`
    select (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used,
      current_setting('max_connections')::int as allowed, pg_database_size(current_database())::float as bytes`);
  if (!row) return [];
  return [
    gauge('db_server_connections', 'Sessions of the PostgreSQL server.', [{ value: row.used }]),
    gauge('db_server_connections_max', 'Sessions that the PostgreSQL server allows.', [{ value: row.allowed }]),
    gauge('db_size_bytes', 'Size of the control database.', [{ value: row.bytes }]),
  ];
}
