import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { emitConnectorEvent, type ReportedConnector } from '../events/account-connector-events.ts';
import type { EventKind } from '../events/kinds.ts';
import { PLANS } from '../pipeline/billing-plans.ts';

/** Days before the end of credentials at which people are told; 0 is the end itself. */
const ANNOUNCED_AT = [14, 7, 1, 0];
const FREE_DAYS = 30;
/** Days before the end of a free period at which people are told. */
const FREE_DAYS_LEFT = 7;
const BATCH = 100;

/**
 * Writes `credentials_expiring` 14, 7 and 1 days before the credentials of a source or destination end; after it, one
 * that was in use needs new ones. Each is written once, however many workers look; of days missed while nobody looked
 * the last is told. Resolves to the number of events.
 */
export const sweepCredentials = (deps: Pick<Deps, 'db'>) => inBatches(deps, tellCredentials);

/** Writes `free_period_ending` a week before rows of a source begin to cost credits, where the plan counts them. */
export const sweepFreePeriods = (deps: Pick<Deps, 'db'>) => inBatches(deps, tellFreePeriods);

async function inBatches({ db }: Pick<Deps, 'db'>, tell: (tx: Db) => Promise<number>): Promise<number> {
  for (let told = 0; ; ) {
    const batch = await db.transaction(tell);
    told += batch;
    if (batch < BATCH) return told;
  }
}

async function tellCredentials(tx: Db): Promise<number> {
  const days = sql.raw(`array[${ANNOUNCED_AT.join(', ')}]`);
  const reached = sql`array(select day from unnest(${days}) as day where c.credentials_expire_at <= now() + make_interval(days => day))`;
  const due = (await tx.execute(sql`
    with due as (
      select c.id, ${reached} as reached, c.status as before from account_connectors c
      where c.deleted_at is null and c.credentials_expire_at <= now() + make_interval(days => ${Math.max(...ANNOUNCED_AT)})
        and 0 <> all(c.announced_days) and not (c.announced_days @> ${reached})
      order by c.credentials_expire_at limit ${BATCH}
      for update of c skip locked)
    update account_connectors c set announced_days = due.reached,
      status = case when 0 = any(due.reached) and c.status = 'active' then 'needs_reauth' else c.status end,
      status_reason = case when 0 = any(due.reached) and c.status = 'active' then 'credentials_expired' else c.status_reason end,
      status_message = case when 0 = any(due.reached) and c.status = 'active' then 'The credentials have ended' else c.status_message end
    from due where c.id = due.id
    returning c.id, c.account_id, c.name, c.connector_type, c.connector_name, c.status, c.status_reason, due.before,
      greatest(0, ceil(extract(epoch from c.credentials_expire_at - now()) / 86400))::int as days_remaining
  `)) as unknown as (ReportedConnector & { before: string; days_remaining: number })[];
  for (const { before, days_remaining, ...row } of due) {
    const left = `${days_remaining} ${days_remaining === 1 ? 'day' : 'days'}`;
    if (days_remaining > 0) {
      await report(tx, row, {
        event: 'credentials_expiring',
        summary: `end within ${left}`,
        extra: { days_remaining },
      });
    } else if (row.status !== before) {
      const extra = { days_remaining };
      await report(tx, row, { event: 'account_connector_reauth_required', summary: 'have ended', extra });
    }
  }
  return due.length;
}

async function tellFreePeriods(tx: Db): Promise<number> {
  const counting = PLANS.filter((plan) => plan.credits_included !== null);
  const due = (await tx.execute(sql`
    with due as (
      select c.id, a.plan_id from account_connectors c join accounts a on a.id = c.account_id
      where c.deleted_at is null and c.connector_type = 'source' and c.free_end_told_at is null
        and c.free_until > now() and c.free_until <= now() + make_interval(days => ${FREE_DAYS_LEFT})
        and a.plan_id in (${sql.join(
          counting.map(({ id }) => sql`${id}`),
          sql`, `,
        )})
      order by c.free_until limit ${BATCH}
      for update of c skip locked)
    update account_connectors c set free_end_told_at = now() from due where c.id = due.id
    returning c.id, c.account_id, c.name, c.connector_type, c.connector_name, c.status, c.status_reason, due.plan_id,
      ceil(extract(epoch from c.free_until - now()) / 86400)::int as days_remaining
  `)) as unknown as (ReportedConnector & { plan_id: string; days_remaining: number })[];
  for (const { plan_id, days_remaining, ...row } of due) {
    const used = FREE_DAYS - days_remaining;
    await report(tx, row, {
      event: 'free_period_ending',
      summary: `end their free period within ${days_remaining} days`,
      extra: {
        limit: 'free_period_days',
        used,
        limit_value: FREE_DAYS,
        percent: Math.floor((used / FREE_DAYS) * 100),
        plan_name: counting.find(({ id }) => id === plan_id)?.name ?? null,
        days_remaining,
      },
    });
  }
  return due.length;
}

async function report(
  tx: Db,
  row: ReportedConnector,
  told: { event: EventKind; summary: string; extra: Record<string, unknown> },
): Promise<void> {
  const subject = told.event === 'free_period_ending' ? 'Rows' : 'Credentials';
  await emitConnectorEvent(tx, {
    row,
    event: told.event,
    sentence: (named) => `${subject} of the ${named} ${told.summary}`,
    extra: told.extra,
  });
}
