import { and, eq, isNull, sql } from 'drizzle-orm';
import { accountConnectors, connections, type StreamRunRow, streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { CREDIT_RATES } from '../pipeline/billing-plans.ts';
import { readAccountPlan } from './account-plan.ts';
import { creditsUsed } from './credits.ts';
import { noticeLimit } from './limit-notices.ts';

const FREE_DAYS = 30;

/**
 * Records in the usage ledger what a stream run has committed since its last entry, and adds the credits to the run. Runs
 * in the transaction that ends an attempt, with the run locked. A worker that died wrote no entry: its rows are part of
 * the next entry, or of the one at the end of the run.
 */
export async function meterStreamRun(db: Db, stream: StreamRunRow): Promise<void> {
  if (stream.rows_loaded <= 0) return;
  const [entry] = await db.execute<{ credits_used: number }>(sql`
    with metered as (
      select coalesce(sum(rows_free + rows_paid), 0) as rows, coalesce(sum(bytes_loaded), 0) as bytes
      from usage_ledger where stream_run_id = ${stream.id}),
    terms as (
      select c.kind, (${JSON.stringify(CREDIT_RATES)}::text::jsonb ->> c.kind)::bigint as rate,
        ${stream.rows_loaded}::bigint - metered.rows as rows,
        greatest(0, ${stream.bytes_loaded}::bigint - metered.bytes) as bytes,
        ${IS_FREE} as free
      from metered, connection_runs r join connections c on c.id = r.connection_id
        join account_connectors source on source.id = c.source_id
      where r.id = ${stream.connection_run_id}),
    entry as (
      insert into usage_ledger (id, account_id, connection_id, connection_run_id, stream_run_id, attempt, day, kind,
        stream_name, rows_free, rows_paid, credits_used, credits_free, bytes_loaded)
      select ${Bun.randomUUIDv7()}::uuid, ${stream.account_id}::uuid, ${stream.connection_id}::uuid,
        ${stream.connection_run_id}::uuid, ${stream.id}::uuid, ${stream.attempt}::int,
        (clock_timestamp() at time zone 'UTC')::date, kind, ${stream.stream_name}::text,
        case when free then rows else 0 end, case when free then 0 else rows end,
        case when free then 0 else rows * rate end, case when free then rows * rate else 0 end, bytes
      from terms where rows > 0
      on conflict do nothing
      returning credits_used, credits_free)
    update connection_runs r set credits_used = r.credits_used + entry.credits_used,
      credits_free = r.credits_free + entry.credits_free, updated_at = now()
    from entry where r.id = ${stream.connection_run_id}
    returning entry.credits_used::float8 as credits_used`);
  if (entry && entry.credits_used > 0) await noticeCredits(db, stream.account_id);
}

/** Rows are free during the free period of their source, which begins with its first successful run. */
const IS_FREE = sql`coalesce(coalesce(r.started_at, r.queued_at) < source.free_until, true)`;

async function noticeCredits(db: Db, account_id: string): Promise<void> {
  const known = await readAccountPlan(db, account_id, { now: new Date() });
  const limit_value = known.plan.credits_included;
  if (limit_value === null) return;
  const used = await creditsUsed(db, account_id, known.period);
  await noticeLimit(db, known, { limit: 'credits_included', used, limit_value });
}

/** Writes entries for streams of a run that has ended whose worker died. The run must be locked. */
export async function meterUnmetered(db: Db, run: { id: string }): Promise<void> {
  const unmetered = await db
    .select()
    .from(streamRuns)
    .where(
      and(
        eq(streamRuns.connection_run_id, run.id),
        sql`${streamRuns.rows_loaded} > (select coalesce(sum(rows_free + rows_paid), 0) from usage_ledger where stream_run_id = ${streamRuns.id})`,
      ),
    );
  for (const stream of unmetered) await meterStreamRun(db, stream);
}

/** The free period of a source starts with its first run that has loaded something. */
export async function beginFreePeriod(db: Db, run: { connection_id: string }): Promise<void> {
  const source = db
    .select({ id: connections.source_id })
    .from(connections)
    .where(eq(connections.id, run.connection_id));
  await db
    .update(accountConnectors)
    .set({ free_until: sql`clock_timestamp() + make_interval(days => ${FREE_DAYS})` })
    .where(and(eq(accountConnectors.id, source), isNull(accountConnectors.free_until)));
}
