import { and, desc, eq, getTableColumns, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import { accountConnectors, connections, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { RunStatus } from '../../pipeline/run-states.ts';
import type { ConnectionSchema } from './schema.ts';
import type { ConnectionStream } from './streams/schema.ts';

const source = alias(accountConnectors, 'source');
const destination = alias(accountConnectors, 'destination');
const creator = alias(users, 'creator');
const updater = alias(users, 'updater');

const NEWEST = [desc(connections.created_at), desc(connections.id)];

const ISO = sql.raw(`'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`);
const iso = (column: string) => sql`to_char(${sql.raw(column)} at time zone 'UTC', ${ISO})`;

const streamsJson = sql<ConnectionStream[]>`(
  select coalesce(json_agg(json_build_object(
    'id', s.id, 'name', s.name, 'namespace', s.namespace, 'selected', s.selected, 'sync_mode', s.sync_mode,
    'destination_sync_mode', s.destination_sync_mode, 'cursor_field', s.cursor_field, 'primary_key', s.primary_key,
    'destination_table', s.destination_table, 'shared_destination_table', s.shared_destination_table, 'backfill_days', s.backfill_days, 'fields', s.fields,
    'filters', s.filters, 'dataset_sql', s.dataset_sql, 'mapping', s.mapping, 'cursor_value', s.state ->> 'cursor',
    'cursor_updated_at', ${iso('s.cursor_updated_at')}, 'row_count_last_run', s.row_count_last_run,
    'fresh_at', ${iso('s.fresh_at')},
    'parked', s.state -> 'parked'
  ) order by coalesce(s.namespace, '') collate "C", s.name collate "C"), '[]')
  from connection_streams s where s.connection_id = ${connections.id})`;

const lastRunJson = sql<ConnectionSchema['last_run']>`(
  select json_build_object(
    'id', r.id, 'status', r.status, 'started_at', ${iso('r.started_at')}, 'finished_at', ${iso('r.finished_at')},
    'rows_loaded', (select coalesce(sum(rows_loaded), 0) from stream_runs where connection_run_id = r.id),
    'error', case when r.error is not null
      then json_build_object('code', r.error -> 'code', 'message', r.error -> 'message') end)
  from connection_runs r where r.connection_id = ${connections.id} order by r.created_at desc, r.id desc limit 1)`;

/** Of the stream that is the furthest behind. */
const logLagJson = sql<ConnectionSchema['log_lag']>`(
  select json_build_object('bytes', k.lag_bytes, 'seconds', k.lag_seconds, 'measured_at', ${iso('k.lag_measured_at')})
  from change_readers k join connection_streams s on s.id = k.stream_id
  where s.connection_id = ${connections.id} and k.lag_measured_at is not null order by k.lag_bytes desc limit 1)`;

const activeRunId = sql<string | null>`(
  select r.id from connection_runs r
  where r.connection_id = ${connections.id} and r.status in ('queued', 'running', 'retrying', 'stopping')
  order by r.number limit 1)`;

type Columns<Name extends string> = Record<Name, PgColumn>;

const person = <User extends Columns<'id' | 'full_name' | 'email'>>(user: User) => ({
  id: user.id as User['id'],
  name: user.full_name as User['full_name'],
  email: user.email as User['email'],
});

const side = <Connector extends Columns<'id' | 'name' | 'connector_name' | 'status' | 'parameters'>>(
  connector: Connector,
) => ({
  id: connector.id as Connector['id'],
  name: connector.name as Connector['name'],
  connector_name: connector.connector_name as Connector['connector_name'],
  status: connector.status as Connector['status'],
  parameters: connector.parameters as Connector['parameters'],
});

/** The columns of a connection that responses show. */
const { run_counter: _counter, deleted_at: _deleted, locked_from: _locked, ...known } = getTableColumns(connections);
const { ticking_since: _ticking, delay_told_at: _told, next_verification_at, ...shown } = known;

/** Selects connections with everything in a response, in one statement. */
const select = (db: Db) =>
  db
    .select({
      connection: shown,
      next_verification_at,
      source: side(source),
      destination: side(destination),
      created_by: person(creator),
      updated_by: person(updater),
      streams: streamsJson,
      last_run: lastRunJson,
      active_run_id: activeRunId,
      log_lag: logLagJson,
    })
    .from(connections)
    .innerJoin(source, eq(source.id, connections.source_id))
    .innerJoin(destination, eq(destination.id, connections.destination_id))
    .leftJoin(creator, eq(creator.id, connections.created_by))
    .leftJoin(updater, eq(updater.id, connections.updated_by));

const recentRunsJson = sql<
  { id: string; number: number; status: RunStatus; created_at: string; duration_ms: number | null }[]
>`(
  select coalesce(json_agg(json_build_object(
    'id', r.id, 'number', r.number, 'status', r.status, 'created_at', ${iso('r.created_at')},
    'duration_ms', (1000 * extract(epoch from coalesce(r.finished_at, now()) - r.started_at))::bigint
  ) order by r.created_at, r.id), '[]')
  from (
    select * from connection_runs newest where newest.connection_id = ${connections.id}
    order by newest.created_at desc, newest.id desc limit 16) r)`;

/** Of the selected stream that is the furthest behind; null if one was not loaded yet. */
const freshAt = sql<string | null>`(
  select case when count(*) = count(s.fresh_at) then ${iso('min(s.fresh_at)')} end
  from connection_streams s where s.connection_id = ${connections.id} and s.selected)`;

/** Selects summaries: no streams, but the last runs. Newest first. */
export const selectSummaries = (db: Db, where: SQL | undefined) =>
  db
    .select({
      connection: shown,
      next_verification_at,
      source: side(source),
      destination: side(destination),
      last_run: lastRunJson,
      active_run_id: activeRunId,
      recent_runs: recentRunsJson,
      fresh_at: freshAt,
    })
    .from(connections)
    .innerJoin(source, eq(source.id, connections.source_id))
    .innerJoin(destination, eq(destination.id, connections.destination_id))
    .where(where)
    .orderBy(...NEWEST);

export const ofAccount = (account: unknown) =>
  and(sql`${connections.account_id} = ${account}`, isNull(connections.deleted_at));

export type ConnectionRecord = Awaited<ReturnType<typeof select>>[number];

/** Newest first. Limits before joining: otherwise skipped rows are joined, too. */
export const selectConnections = (db: Db, where: SQL | undefined, page: { limit?: number; offset: number }) => {
  const all = select(db)
    .where(where)
    .orderBy(...NEWEST)
    .$dynamic();
  if (page.offset === 0) return page.limit === undefined ? all : all.limit(page.limit);
  const ids = db
    .select({ id: connections.id })
    .from(connections)
    .where(where)
    .orderBy(...NEWEST)
    .$dynamic();
  const cut = page.limit === undefined ? ids.offset(page.offset) : ids.limit(page.limit).offset(page.offset);
  return select(db)
    .where(inArray(connections.id, cut))
    .orderBy(...NEWEST);
};

const one = (db: Db) =>
  select(db)
    .where(and(sameAs(connections.id, 'id'), ofAccount(sql.placeholder('account_id'))))
    .prepare('connection');

const sameAs = (column: PgColumn, placeholder: string) => sql`${column} = ${sql.placeholder(placeholder)}`;

// Building this statement takes as long as running it, so the pool's is cached; each transaction builds its own.
const prepared = new WeakMap<Db, ReturnType<typeof one>>();

export async function selectConnection(
  db: Db,
  key: { id: string; account_id: string },
): Promise<ConnectionRecord | undefined> {
  const query = prepared.get(db) ?? one(db);
  prepared.set(db, query);
  const [record] = await query.execute(key);
  return record;
}
