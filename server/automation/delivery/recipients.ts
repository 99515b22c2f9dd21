import { and, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import { accounts, type CaseRow, type DeliveryRow, users } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { heldUntil, quietSettingsOf } from '../../pipeline/quiet-hours.ts';

interface Recipients {
  /** Whom the email may be sent to now. */
  due: string[];
  /** When the quiet hours of the next of the others end. Null: there are no others. */
  until: Date | null;
}

/** The recipients who have not received the email, by their own quiet hours. */
export async function recipientsNow(
  deps: Deps,
  {
    delivery,
    severity,
    recipients,
  }: {
    delivery: Pick<DeliveryRow, 'account_id' | 'delivered_to'>;
    severity: CaseRow['severity'];
    recipients: readonly string[];
  },
): Promise<Recipients> {
  const now = deps.now();
  const due: string[] = [];
  const ends: Date[] = [];
  for (const { email, preferences, timezone } of await liveRecipients(deps, delivery.account_id, recipients)) {
    if (delivery.delivered_to.includes(email)) continue;
    const end = heldUntil(quietSettingsOf(preferences), { severity, timezone, now });
    if (end) ends.push(end);
    else due.push(email);
  }
  return { due, until: ends.toSorted((one, other) => one.getTime() - other.getTime())[0] ?? null };
}

/** The recipients who are still users of the account. `recipients`: in lower case. */
export const liveRecipients = (deps: Deps, account_id: string, recipients: readonly string[]) =>
  deps.db
    .select({
      email: users.email,
      preferences: users.notification_preferences,
      timezone: sql<string>`coalesce(${users.timezone}, ${accounts.timezone})`,
    })
    .from(users)
    .innerJoin(accounts, eq(accounts.id, users.account_id))
    .where(
      and(
        eq(users.account_id, account_id),
        isNull(users.deleted_at),
        ne(users.status, 'disabled'),
        inArray(sql`lower(${users.email})`, [...recipients]),
      ),
    )
    .orderBy(users.email);
