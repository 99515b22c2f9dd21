import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { emitConnectorEvent, type ReportedConnector } from '../events/account-connector-events.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import type { EventKind } from '../events/kinds.ts';
import { emitKeyEvent } from '../events/user-events.ts';
import { PLANS } from '../pipeline/billing-plans.ts';
import { NOTICE_DAYS } from '../pipeline/notice-days.ts';

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

/**
 * Emits `api_key_expiring` 14, 7 and 1 days before a live key of an active user expires, and `api_key_expired` when it
 * does. Otherwise as `announceExpiringCredentials`.
 */
export const announceExpiringKeys = (deps: Pick<Deps, 'db'>) => inBatches(deps, announceKeyBatch);

/** Emits `free_period_ending` a week before rows of a source begin to cost credits, for plans that include credits. */
export const announceEndingFreePeriods = (deps: Pick<Deps, 'db'>) => inBatches(deps, announceFreePeriodBatch);

async function inBatches({ db }: Pick<Deps, 'db'>, announceBatch: (tx: Db) => Promise<number>): Promise<number> {
  for (let announced = 0; ; ) {
    const batch = await db.transaction(announceBatch);
    announced += batch;
    if (batch < BATCH) return announced;
  }
}

const DAYS = sql.raw(`array[${NOTICE_DAYS.join(', ')}]`);

/** All announcements that are due. Only the latest one is emitted. */
const reachedBefore = (expiry: SQL) =>
  sql`array(select day from unnest(${DAYS}) as day where ${expiry} <= now() + make_interval(days => day))`;

/** Until an instant that has not passed, rounded up. */
const daysUntil = (instant: SQL) => sql`greatest(0, ceil(extract(epoch from ${instant} - now()) / 86400))::int`;

async function announceCredentialBatch(tx: Db): Promise<number> {
  const reached = reachedBefore(sql`c.credentials_expire_at`);
  const due = (await tx.execute(sql`
    with due as (
      select c.id, ${reached} as reached, c.status as before from account_connectors c
      where c.deleted_at is null and c.credentials_expire_at <= now() + make_interval(days => ${Math.max(...NOTICE_DAYS)})
        and 0 <> all(c.announced_days) and not (c.announced_days @> ${reached})
      order by c.credentials_expire_at limit ${BATCH}
      for no key update of c skip locked)
    update account_connectors c set announced_days = due.reached,
      status = case when 0 = any(due.reached) and c.status = 'active' then 'needs_reauth' else c.status end,
      status_reason = case when 0 = any(due.reached) and c.status = 'active' then 'credentials_expired' else c.status_reason end,
      status_message = case when 0 = any(due.reached) and c.status = 'active' then 'The credentials have expired' else c.status_message end
    from due where c.id = due.id
    returning c.id, c.account_id, c.name, c.connector_type, c.connector_name, c.status, c.status_reason, due.before,
      ${daysUntil(sql`c.credentials_expire_at`)} as days_remaining
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

interface ExpiringKey {
  id: string;
  prefix: string;
  account_id: string;
  user_id: string;
  email: string;
  full_name: string;
  expires_at: string;
  days_remaining: number;
}

/** By the clock of the database, which decides when keys expire. */
async function announceKeyBatch(tx: Db): Promise<number> {
  const reached = reachedBefore(sql`k.expires_at`);
  const due = (await tx.execute(sql`
    with due as (
      select k.id, ${reached} as reached
      from api_keys k join users u on u.id = k.user_id
      where k.revoked_at is null and 0 <> all(k.announced_days) and not (k.announced_days @> ${reached})
        and k.expires_at <= now() + make_interval(days => ${Math.max(...NOTICE_DAYS)})
        and u.status = 'active' and u.deleted_at is null
      order by k.expires_at limit ${BATCH}
      for no key update of k skip locked)
    update api_keys k set announced_days = due.reached
    from due, users u where k.id = due.id and u.id = k.user_id
    returning k.id, k.prefix, k.account_id, k.user_id, u.email, u.full_name, k.expires_at,
      ${daysUntil(sql`k.expires_at`)} as days_remaining`)) as unknown as ExpiringKey[];
  for (const key of due) {
    const { user_id: id, account_id, email, full_name, days_remaining } = key;
    await emitKeyEvent({ db: tx, actor: SYSTEM_ACTOR }, days_remaining === 0 ? 'api_key_expired' : 'api_key_expiring', {
      user: { id, account_id, email, full_name },
      key,
      days_remaining,
      facts: { expires_at: new Date(key.expires_at).toISOString() },
    });
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
      ${daysUntil(sql`c.free_until`)} as days_remaining
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
