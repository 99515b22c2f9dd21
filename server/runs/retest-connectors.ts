import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../db/schema/index.ts';
import { findsAny, type Question } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import { requestDiscovery } from '../catalog/request-discovery.ts';
import { type TestOutcome, testRow, transitionEvent } from '../connector-runtime/test-outcome.ts';
import type { Deps } from '../deps.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { emitConnectorEvent } from '../events/account-connector-events.ts';

const AT_ONCE = 4;
const MAX_PAUSE_MINUTES = 60;
/** 2^6 minutes exceed the longest pause. */
const MAX_DOUBLINGS = 6;

/** Expired credentials stay expired: a test may still pass for a while. */
const IS_RETESTED = sql`deleted_at is null and status in ('broken', 'needs_reauth')
  and status_reason is distinct from 'credentials_expired'`;

/** To be planned, made or cancelled. */
const ANY_RETEST: Question = {
  name: 'retests',
  query: () => sql`select true from account_connectors
    where case when ${IS_RETESTED} then coalesce(retest_at <= now(), true) else retest_at is not null end limit 1`,
};

/**
 * Tests sources and destinations that failed again: a minute after they broke, then with pauses that double, up to an
 * hour. Connections of one that passes run again with their next tick. Any number of workers may call it at once.
 */
export async function retestConnectors(deps: Deps): Promise<void> {
  if (!(await findsAny(deps.db, ANY_RETEST))) return;
  await planRetests(deps.db);
  for (let tested = AT_ONCE; tested === AT_ONCE; ) {
    const due = await claimDue(deps.db);
    await Promise.all(due.map((row) => retest(deps, row)));
    tested = due.length;
  }
}

/** The status alone decides, whoever changed it: users, tests, runs and expiries. */
async function planRetests(db: Db): Promise<void> {
  await db.execute(sql`
    update account_connectors set retest_at = now() + interval '1 minute', retests = 0
    where retest_at is null and ${IS_RETESTED}`);
  await db.execute(sql`
    update account_connectors set retest_at = null, retests = 0 where retest_at is not null and not (${IS_RETESTED})`);
}

/** Plans the test after this one in the same statement, so that a worker that dies in between only misses one. */
async function claimDue(db: Db): Promise<AccountConnectorRow[]> {
  const due = sql`(select id from account_connectors where retest_at <= now() and ${IS_RETESTED}
    order by retest_at limit ${AT_ONCE} for no key update skip locked)`;
  const minutes = sql`least(${MAX_PAUSE_MINUTES}, power(2, least(${accountConnectors.retests} + 1, ${MAX_DOUBLINGS})))`;
  return db
    .update(accountConnectors)
    .set({
      retests: sql`${accountConnectors.retests} + 1`,
      retest_at: sql`now() + make_interval(mins => ${minutes}::int)`,
      updated_at: sql`${accountConnectors.updated_at}`,
    })
    .where(inArray(accountConnectors.id, due))
    .returning();
}

async function retest(deps: Deps, row: AccountConnectorRow): Promise<void> {
  const { outcome, passed } = await testRow(deps, row, SYSTEM_ACTOR);
  await deps.db.transaction(async (tx) => {
    const [changed] = await tx
      .update(accountConnectors)
      .set(passed ? outcome : failedAgain(outcome))
      .where(
        and(
          eq(accountConnectors.id, row.id),
          eq(accountConnectors.revision, row.revision),
          eq(accountConnectors.status, row.status),
          isNull(accountConnectors.deleted_at),
        ),
      )
      .returning();
    // The row changed in the meantime: the result is about outdated settings.
    if (!changed || !passed) return;
    await announce(tx, row, changed);
    if (changed.connector_type === 'source' && ['never', 'failed'].includes(changed.catalog_status)) {
      const { id: account_connector_id, account_id } = changed;
      await requestDiscovery(tx, deps.queue, {
        account_id,
        account_connector_id,
        connection_id: null,
        created_by: null,
      });
    }
  });
}

/** The status stays what it was: a server that is also unreachable does not make wrong credentials right. */
const failedAgain = ({ status: _status, ...outcome }: TestOutcome) => ({
  ...outcome,
  updated_at: sql`${accountConnectors.updated_at}`,
});

async function announce(tx: Db, before: AccountConnectorRow, row: AccountConnectorRow): Promise<void> {
  const event = transitionEvent(before.status, row.status);
  if (!event) return;
  const skipped_runs = await countSkippedRuns(tx, row);
  const runs = skipped_runs === 1 ? '1 scheduled run was' : `${skipped_runs} scheduled runs were`;
  await emitConnectorEvent(tx, {
    row,
    event,
    sentence: `works again${skipped_runs === 0 ? '' : `. ${runs} skipped in the meantime`}`,
    extra: { skipped_runs },
  });
}

/** Runs of its connections that were skipped because it was not ready, since it broke. */
async function countSkippedRuns(tx: Db, { id, account_id }: AccountConnectorRow): Promise<number> {
  const [row] = await tx.execute<{ count: number }>(sql`
    select count(*)::int as count from connection_runs r join connections c on c.id = r.connection_id
    where ${id} in (c.source_id, c.destination_id) and r.skip_reason = 'source_not_ready'
      and r.queued_at >= coalesce((
        select max(e.occurred_at) from events e where e.account_id = ${account_id} and e.account_connector_id = ${id}
          and e.event in ('account_connector_broken', 'account_connector_reauth_required')), '-infinity')`);
  return row?.count ?? 0;
}
