import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { emitKeyEvent } from '../events/user-events.ts';

/** Days before a key expires; 0 is the expiry itself. */
const ANNOUNCED_AT = [14, 7, 1, 0];
const BATCH = 100;

interface Due {
  id: string;
  prefix: string;
  account_id: string;
  user_id: string;
  email: string;
  full_name: string;
  expires_at: string;
  days_remaining: number;
}

/**
 * Emits `api_key_expiring` 14, 7 and 1 days before a live key of an active user expires, and `api_key_expired` when it
 * does. Each event is emitted once, with any number of workers; after a downtime only the latest one is emitted.
 * Returns the number of events.
 */
export async function announceExpiringKeys(deps: Pick<Deps, 'db'>): Promise<number> {
  for (let announced = 0; ; ) {
    const batch = await deps.db.transaction(announceBatch);
    announced += batch;
    if (batch < BATCH) return announced;
  }
}

async function announceBatch(tx: Db): Promise<number> {
  const due = await takeDue(tx);
  for (const key of due) await report(tx, key);
  return due.length;
}

/** By the clock of the database, which decides when keys expire. Skips keys that another worker has locked. */
async function takeDue(tx: Db): Promise<Due[]> {
  const days = sql.raw(`array[${ANNOUNCED_AT.join(', ')}]`);
  // All announcements that are due. Only the latest one is emitted.
  const reached = sql`array(select day from unnest(${days}) as day where k.expires_at <= now() + make_interval(days => day))`;
  return (await tx.execute(sql`
    with due as (
      select k.id, ${reached} as reached
      from api_keys k join users u on u.id = k.user_id
      where k.revoked_at is null and 0 <> all(k.announced_days) and not (k.announced_days @> ${reached})
        and k.expires_at <= now() + make_interval(days => ${Math.max(...ANNOUNCED_AT)})
        and u.status = 'active' and u.deleted_at is null
      order by k.expires_at limit ${BATCH}
      for no key update of k skip locked)
    update api_keys k set announced_days = due.reached
    from due, users u where k.id = due.id and u.id = k.user_id
    returning k.id, k.prefix, k.account_id, k.user_id, u.email, u.full_name, k.expires_at,
      greatest(0, ceil(extract(epoch from k.expires_at - now()) / 86400))::int as days_remaining`)) as unknown as Due[];
}

async function report(tx: Db, key: Due): Promise<void> {
  const { user_id: id, account_id, email, full_name, days_remaining } = key;
  await emitKeyEvent({ db: tx, actor: SYSTEM_ACTOR }, days_remaining === 0 ? 'api_key_expired' : 'api_key_expiring', {
    user: { id, account_id, email, full_name },
    key,
    days_remaining,
    facts: { expires_at: new Date(key.expires_at).toISOString() },
  });
}
