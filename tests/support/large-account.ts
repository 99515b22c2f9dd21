import type postgres from 'postgres';

/** How large an account is. */
export interface Size {
  connections: number;
  runs: number;
  events: number;
}

/** Existing rows that the others refer to. */
export interface Roots {
  account_id: string;
  destination_id: string;
  connection_id: string;
  stream_id: string;
  trigger_id: string;
}

/**
 * Fills an account by SQL: connections with a stream each; runs of the last 400 days, a hundredth of them of one
 * connection and the rest spread; a stream run, a network log segment and a row of the ledger for each run; events; and
 * a tenth as many sources and cases as connections. One connection in a thousand is locked, one has the
 * tag `rare`, and one is in a folder below `rare`; the others are in ten folders.
 */
export async function fillAccount(sql: postgres.Sql, roots: Roots, size: Size): Promise<void> {
  const { account_id, destination_id, connection_id, stream_id, trigger_id } = roots;
  const others = Math.ceil(size.connections / 10);
  await sql`
    insert into account_connectors (id, account_id, name, connector_type, connector_name, status, created_at)
    select gen_random_uuid(), ${account_id}, 'large ' || n, 'source', 'demo', 'active', now() - n * interval '1 second'
    from generate_series(1, ${others}::int) n`;
  await sql`
    with sources as (
      select id, row_number() over () n from account_connectors
      where account_id = ${account_id} and name like 'large %')
    insert into connections (id, account_id, name, source_id, destination_id, schedule, tags, folder, status, created_at)
    select gen_random_uuid(), ${account_id}, 'large ' || g, sources.id, ${destination_id}, 
      '{"type":"manual","timezone":"UTC","interval_minutes":null,"cron_expression":null,"time_of_day":null}',
      case when g % 1000 = 0 then '{rare}'::text[] else '{}' end,
      case when g % 1000 = 2 then 'rare/one' else 'team/' || g % 10 end,
      case when g % 1000 = 1 then 'locked' else 'active' end, now() - g * interval '1 second'
    from generate_series(1, ${size.connections}::int) g join sources on sources.n = 1 + g % ${others}::int`;
  await sql`
    insert into connection_streams (id, account_id, connection_id, name, sync_mode, destination_sync_mode)
    select gen_random_uuid(), account_id, id, 'orders', 'full_refresh', 'append'
    from connections where account_id = ${account_id} and name like 'large %'`;
  await sql.begin(async (tx) => {
    // Without the checks of foreign keys, which hold: they took a third of the time.
    await tx`set local session_replication_role = replica`;
    await fillRuns(tx, { account_id, connection_id, stream_id }, size);
    await fillAutomation(tx, { account_id, connection_id, trigger_id }, { events: size.events, cases: others });
  });
  await sql`analyze`;
}

async function fillRuns(
  sql: postgres.TransactionSql,
  { account_id, connection_id, stream_id }: Pick<Roots, 'account_id' | 'connection_id' | 'stream_id'>,
  size: Size,
): Promise<void> {
  await sql`
    with parents as (
      select id, row_number() over () n from connections where account_id = ${account_id} and name like 'large %')
    insert into connection_runs
      (id, account_id, connection_id, number, status, run_type, trigger_type, queued_at, finished_at, created_at)
    select gen_random_uuid(), ${account_id}, case when g % 100 = 0 then ${connection_id}::uuid else parents.id end,
      1000 + g, case when g % 997 = 0 then 'failed' else 'succeeded' end, 'plain', 'schedule',
      now() - interval '400 days' * g / ${size.runs}::int, now(), now() - interval '400 days' * g / ${size.runs}::int
    from generate_series(1, ${size.runs}::int) g join parents on parents.n = 1 + g % ${size.connections}::int`;
  await sql`
    insert into stream_runs
      (id, account_id, connection_id, connection_run_id, stream_id, stream_name, status, sync_mode, destination_sync_mode,
      finished_at)
    select gen_random_uuid(), account_id, connection_id, id, ${stream_id}, 'orders', 'succeeded', 'full_refresh', 'append',
      finished_at
    from connection_runs where account_id = ${account_id} and number > 1000`;
  await sql`
    insert into network_log_segments
      (id, account_id, connection_run_id, stream_run_id, connector_type, object_key, entries, bytes)
    select gen_random_uuid(), account_id, connection_run_id, id, 'source', 'none/' || id, 1, 1
    from stream_runs where account_id = ${account_id} and stream_id = ${stream_id}`;
  await sql`
    insert into usage_ledger (id, account_id, connection_id, connection_run_id, stream_run_id, attempt, day, kind,
      stream_name, rows_free, rows_paid, credits_used, credits_free, bytes_loaded)
    select gen_random_uuid(), account_id, connection_id, connection_run_id, id, 1,
      current_date - (random() * 400)::int, 'elt', stream_name, 0, 10, 10, 0, 100
    from stream_runs where account_id = ${account_id} and stream_id = ${stream_id}`;
  await queueMonth(sql, account_id);
}

/** What triggers would have queued, for this month alone: summing 400 days takes minutes. */
async function queueMonth(sql: postgres.TransactionSql, account_id: string): Promise<void> {
  await sql`update accounts set periods_from = date_trunc('month', current_date) where id = ${account_id}`;
  await sql`
    insert into connection_period_changes (account_id, connection_id, day, rows, runs)
    select account_id, connection_id, day, sum(rows), sum(runs) from (
      select account_id, connection_id, day, rows_free + rows_paid as rows, 0 as runs from usage_ledger
      union all
      select account_id, connection_id, (created_at at time zone 'UTC')::date, 0, 1 from connection_runs) changes
    where account_id = ${account_id} and day >= date_trunc('month', current_date)
    group by account_id, connection_id, day`;
}

async function fillAutomation(
  sql: postgres.TransactionSql,
  roots: Pick<Roots, 'account_id' | 'connection_id' | 'trigger_id'>,
  size: { events: number; cases: number },
): Promise<void> {
  const { account_id, connection_id, trigger_id } = roots;
  await sql`
    insert into events (id, account_id, event, category, severity, actor, resource, summary, connection_id, occurred_at,
      processing_status)
    select gen_random_uuid(), ${account_id},
      case when g % 9973 = 0 then 'connection_auto_disabled' else 'connection_succeeded' end,
      case when g % 9973 = 0 then 'connection' else 'run' end, case when g % 9973 = 0 then 'critical' else 'info' end,
      '{"type":"system","id":null,"name":null}', '{"type":"connection","id":"x","name":null}', 'It went well',
      case when g % 100 = 0 then ${connection_id}::uuid else gen_random_uuid() end, now() - interval '400 days' * g / ${size.events}::int,
      'processed'
    from generate_series(1, ${size.events}::int) g`;
  await sql`
    insert into cases (id, account_id, number, title, status, severity, trigger_id, dedup_key, "group", first_event_at,
      last_event_at, opened_at, resolved_at, resolution, created_at)
    select gen_random_uuid(), ${account_id}, 1000000 + g, 'It failed', case when g % 100 = 0 then 'open' else 'resolved' end,
      'warning', ${trigger_id}, 'large ' || g, '{}', now(), now(), now(),
      case when g % 100 = 0 then null else now() end, case when g % 100 = 0 then null else 'manual' end, now() - g * interval '1 second'
    from generate_series(1, ${size.cases}::int) g`;
}
