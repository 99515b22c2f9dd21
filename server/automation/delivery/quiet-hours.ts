import { eq } from 'drizzle-orm';
import {
  accounts,
  cases,
  deliveries,
  type DeliveryRow,
  notificationSettings,
  triggers,
} from '../../../db/schema/index.ts';
import { SEVERITIES } from '../../../db/schema/closed-sets.ts';
import type { Deps } from '../../deps.ts';
import { latestDaily, nextDaily } from '../../pipeline/daily-times.ts';
import { sendDelivery } from './queue-deliveries.ts';

export interface QuietHours {
  timezone: string;
  /** Local times of day, HH:MM. */
  quiet_from: string;
  quiet_until: string;
}

/**
 * The end of the quiet hours that `now` lies in, or null. Both ends follow the local clock: a time that it skips is the end
 * of the gap, a time that it repeats counts once. Pure.
 */
export function quietUntil({ timezone, quiet_from, quiet_until }: QuietHours, now: Date): Date | null {
  const begun = latestDaily(quiet_from, { timezone, until: now });
  // From just before the start: one gap may skip both.
  const end = nextDaily(quiet_until, { timezone, after: new Date(begun.getTime() - 1) });
  return now < end ? end : null;
}

const TO_PEOPLE: readonly DeliveryRow['type'][] = ['send_chat_message', 'send_email'];

/** Holds a message to people until the end of quiet hours, unless it is urgent. @returns whether it waits */
export async function holdForQuietHours(deps: Deps, { id, type }: DeliveryRow): Promise<boolean> {
  if (!TO_PEOPLE.includes(type)) return false;
  const [row] = await deps.db
    .select({
      settings: notificationSettings,
      account: accounts.timezone,
      trigger: triggers.severity,
      case: cases.severity,
    })
    .from(deliveries)
    .innerJoin(notificationSettings, eq(notificationSettings.account_id, deliveries.account_id))
    .innerJoin(accounts, eq(accounts.id, deliveries.account_id))
    .innerJoin(triggers, eq(triggers.id, deliveries.trigger_id))
    .leftJoin(cases, eq(cases.id, deliveries.case_id))
    .where(eq(deliveries.id, id));
  if (!row) return false;
  const { quiet_from, quiet_until, urgent_severity, timezone } = row.settings;
  if (quiet_from === null || quiet_until === null) return false;
  const severity = SEVERITIES.indexOf(row.case ?? row.trigger);
  if (urgent_severity !== null && severity >= SEVERITIES.indexOf(urgent_severity)) return false;
  const end = quietUntil({ timezone: timezone ?? row.account, quiet_from, quiet_until }, deps.now());
  if (!end) return false;
  const at = end.toISOString();
  await deps.db.transaction(async (tx) => {
    await tx.update(deliveries).set({ next_attempt_at: at, held_until: at }).where(eq(deliveries.id, id));
    await sendDelivery(tx, deps.queue, { id, at, now: deps.now().toISOString() });
  });
  return true;
}
