import { sql } from 'drizzle-orm';
import { historyLimit } from '../billing/retention-days.ts';
import type { Deps } from '../deps.ts';

const BATCH_ROWS = 2000;

/** Rows that another process works on are skipped: a delete neither waits nor holds up. */
const UNLOCKED = sql`limit ${BATCH_ROWS} for no key update of d skip locked`;

type Needs = Pick<Deps, 'db' | 'now' | 'config'>;

/** Deletes a batch of deliveries that have ended. Returns their number. */
export async function deleteOldDeliveries({ db, now, config }: Needs): Promise<number> {
  const gone = await db.execute(sql`
    delete from deliveries where id in (
      select d.id from deliveries d join accounts on accounts.id = d.account_id
      where d.status not in ('pending', 'retrying') and d.created_at < ${historyLimit(now(), config.DELIVERY_RETENTION_DAYS)}
      order by d.created_at ${UNLOCKED})
    returning id`);
  return gone.length;
}

/**
 * Deletes a batch of events with their matches and deliveries. Events that a live case shows, that a trigger waits from,
 * or that a delivery still needs are kept. Returns their number.
 */
export async function deleteOldEvents({ db, now, config }: Needs): Promise<number> {
  const gone = await db.execute(sql`
    delete from events where id in (
      select d.id from events d join accounts on accounts.id = d.account_id
      where d.processing_status in ('processed', 'failed')
        and d.occurred_at < ${historyLimit(now(), config.EVENT_RETENTION_DAYS)}
        and not exists (select from deliveries w where w.event_id = d.id and w.status in ('pending', 'retrying'))
        and d.id not in (select g.event_id from trigger_groups g where g.event_id is not null)
        and d.id not in (select unnest(c.latest_event_ids) from cases c where c.status <> 'resolved')
      order by d.occurred_at ${UNLOCKED})
    returning id`);
  return gone.length;
}
