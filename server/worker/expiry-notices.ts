import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { emitConnectorEvent, type ReportedConnector } from '../events/account-connector-events.ts';
import type { EventKind } from '../events/kinds.ts';
import { PLANS } from '../pipeline/billing-plans.ts';

/** Days before credentials expire; 0 is the expiry itself. */
const ANNOUNCED_AT = [14, 7, 1, 0];
const FREE_DAYS = 30;
/** Days before the end of a free period. */
const FREE_DAYS_LEFT = 7;
const BATCH = 100;

/**
 * Emits `credentials_expiring` 14, 7 and 1 days before the credentials of a source or destination expire. When they
 * expire, an active source or destination needs new ones. Each event is emitted once, with any number of workers; after
 * a downtime only the latest one is emitted. Returns the number of events.
 */
export const announceExpiringCredentials = (deps: Pick<Deps, 'db'>) => inBatches(deps, announceCredentialBatch);

/** Emits `free_period_ending` a week before rows of a source begin to cost credits, for plans that include credits. */
export const announceEndingFreePeriods = (deps: Pick<Deps, 'db'>) => inBatches(deps, announceFreePeriodBatch);

async function inBatches({ db }: Pick<Deps, 'db'>, announceBatch: (tx: Db) => Promise<number>): Promise<number> {
  for (let announced = 0; ; ) {
    const batch = await db.transaction(announceBatch);
    announced += batch;
    if (batch < BATCH) return announced;
  }
}

async function announceCredentialBatch(tx: Db): Promise<number> {
  const days = sql.raw(`array[${ANNOUNCED_AT.join(', ')}]`);
  const reached = sql`array(select day from unnest(${days}) as day where c.credentials_expire_at <= now() + make_interval(days => day))`;
  const due = (await tx.execute(sql`
    with due as (
      select c.id, ${reached} as reached, c.status as before from account_connectors c
      where c.deleted_at is null and c.credentials_expire_at <= now() + make_interval(days => ${Math.max(...ANNOUNCED_AT)})
        and 0 <> all(c.announced_days) and not (c.announced_days @> ${reached})
      order by c.credentials_expire_at limit ${BATCH}
      for no key update of c skip locked)
    update account_connectors c set announced_days = due.reached,
      status = case when 0 = any(due.reached) and c.status = 'active' then 'needs_reauth' else c.status end,
      status_reason = case when 0 = any(due.reached) and c.status = 'active' then 'credentials_expired' else c.status_reason end,
      status_message = case when 0 = any(due.reached) and c.status = 'active' then 'The credentials have expired' else c.status_message end
    from due where c.id = due.id
    returning c.id, c.account_id, c.name, c.connector_type, c.connector_name, c.status, c.status_reason, due.before,
      greatest(0, ceil(extract(epoch from c.credentials_expire_at - now()) / 86400))::int as days_remaining
  `)) as unknown as (ReportedConnector & { before: string; days_remaining: number })[];
  for (const { before, days_remaining, ...row } of due) {
    if (days_remaining > 0) {
      await emitNotice(tx, row, {
        event: 'credentials_expiring',
        summary: `expire within ${daysText(days_remaining)}`,
        extra: { days_remaining },
      });
    } else if (row.status !== before) {
      const extra = { days_remaining };
      await emitNotice(tx, row, { event: 'account_connector_reauth_required', summary: 'have expired', extra });
    }
  }
  return due.length;
}

async function announceFreePeriodBatch(tx: Db): Promise<number> {
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
      for no key update of c skip locked)
    update account_connectors c set free_end_told_at = now() from due where c.id = due.id
    returning c.id, c.account_id, c.name, c.connector_type, c.connector_name, c.status, c.status_reason, due.plan_id,
      ceil(extract(epoch from c.free_until - now()) / 86400)::int as days_remaining
  `)) as unknown as (ReportedConnector & { plan_id: string; days_remaining: number })[];
  for (const { plan_id, days_remaining, ...row } of due) {
    const used = FREE_DAYS - days_remaining;
    await emitNotice(tx, row, {
      event: 'free_period_ending',
      summary: `are free for ${daysText(days_remaining)} more`,
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

const daysText = (days: number) => `${days} ${days === 1 ? 'day' : 'days'}`;

async function emitNotice(
  tx: Db,
  row: ReportedConnector,
  report: { event: EventKind; summary: string; extra: Record<string, unknown> },
): Promise<void> {
  const subject = report.event === 'free_period_ending' ? 'Rows' : 'Credentials';
  await emitConnectorEvent(tx, {
    row,
    event: report.event,
    sentence: (named) => `${subject} of the ${named} ${report.summary}`,
    extra: report.extra,
  });
}
