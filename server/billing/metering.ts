import { and, eq, isNull, sql } from 'drizzle-orm';
import {
  accountConnectors,
  connectionRuns,
  connections,
  type StreamRunRow,
  streamRuns,
  usageLedger,
} from '../../db/schema/index.ts';
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
  const [metered] = await db
    .select({
      rows: sql<string>`coalesce(sum(${usageLedger.rows_free} + ${usageLedger.rows_paid}), 0)`,
      bytes: sql<string>`coalesce(sum(${usageLedger.bytes_loaded}), 0)`,
    })
    .from(usageLedger)
    .where(eq(usageLedger.stream_run_id, stream.id));
  const rows = stream.rows_loaded - Number(metered?.rows ?? 0);
  if (rows <= 0) return;
  const terms = await termsOf(db, stream.connection_run_id);
  const credits = rows * CREDIT_RATES[terms.kind];
  const [entry] = await db
    .insert(usageLedger)
    .values({
      account_id: stream.account_id,
      connection_id: stream.connection_id,
      connection_run_id: stream.connection_run_id,
      stream_run_id: stream.id,
      attempt: stream.attempt,
      day: sql`(clock_timestamp() at time zone 'UTC')::date`,
      kind: terms.kind,
      stream_name: stream.stream_name,
      rows_free: terms.free ? rows : 0,
      rows_paid: terms.free ? 0 : rows,
      credits_used: terms.free ? 0 : credits,
      credits_free: terms.free ? credits : 0,
      bytes_loaded: Math.max(0, stream.bytes_loaded - Number(metered?.bytes ?? 0)),
    })
    .onConflictDoNothing()
    .returning();
  if (!entry) return;
  await db
    .update(connectionRuns)
    .set({
      credits_used: sql`${connectionRuns.credits_used} + ${entry.credits_used}`,
      credits_free: sql`${connectionRuns.credits_free} + ${entry.credits_free}`,
    })
    .where(eq(connectionRuns.id, stream.connection_run_id));
  if (entry.credits_used > 0) await noticeCredits(db, stream.account_id);
}

/** Rows are free during the free period of their source, which begins with its first successful run. */
async function termsOf(db: Db, connection_run_id: string): Promise<{ kind: keyof typeof CREDIT_RATES; free: boolean }> {
  const [terms] = await db
    .select({
      kind: connections.kind,
      free: sql<boolean>`coalesce(coalesce(${connectionRuns.started_at}, ${connectionRuns.queued_at}) < ${accountConnectors.free_until}, true)`,
    })
    .from(connectionRuns)
    .innerJoin(connections, eq(connections.id, connectionRuns.connection_id))
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.source_id))
    .where(eq(connectionRuns.id, connection_run_id));
  if (!terms) throw new Error(`connection or source of run ${connection_run_id} does not exist`);
  return terms;
}

async function noticeCredits(db: Db, account_id: string): Promise<void> {
  const known = await readAccountPlan(db, account_id, { now: new Date() });
  const limit_value = known.plan.credits_included;
  if (limit_value === null) return;
  const used = await creditsUsed(db, account_id, known.period);
  await noticeLimit(db, known, { limit: 'credits_included', used, limit_value });
}

/**
 * Completes the metering of a run that has ended: writes entries for streams whose worker died, and starts the free
 * period of a source after its first success. The run must be locked.
 */
export async function meterEndedRun(
  db: Db,
  run: { id: string; connection_id: string },
  succeeded: boolean,
): Promise<void> {
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
  if (!succeeded) return;
  const source = db
    .select({ id: connections.source_id })
    .from(connections)
    .where(eq(connections.id, run.connection_id));
  await db
    .update(accountConnectors)
    .set({ free_until: sql`clock_timestamp() + make_interval(days => ${FREE_DAYS})` })
    .where(and(eq(accountConnectors.id, source), isNull(accountConnectors.free_until)));
}
