import { z } from 'zod';
import { and, eq } from 'drizzle-orm';
import { triggers } from '../../../db/schema/index.ts';
import { DAILY_DIGEST } from '../../automation/triggers/system-triggers.ts';
import { NotifyingAction } from '../../automation/triggers/action-schema.ts';
import { maskAddress } from '../../platform/keyed-address.ts';
import { validateActions } from '../../automation/triggers/validate-actions.ts';
import type { Ctx } from '../../api/procedure.ts';
import { ensureDigest } from './notification-settings.ts';
import { listTriggers } from './triggers-query.ts';
import type { TriggerSchema } from './triggers-schema.ts';
import { changeTrigger } from './triggers-write.ts';

export const SetUpNotificationsRequest = z
  .strictObject({
    action: NotifyingAction,
    daily_digest: z
      .boolean()
      .default(false)
      .meta({ description: 'Also send the daily digest there, at 08:00 unless another time is set.' }),
  })
  .meta({
    id: 'SetUpNotificationsRequest',
    examples: [{ action: { type: 'call_webhook', url: 'https://example.com/problems' } }],
  });

const ALL_SYSTEM = { include_system: true, offset: 0 };

/**
 * Adds the action to every built-in trigger that does not notify the same place yet.
 * @throws ApiError as `updateTrigger`
 */
export async function setUpNotifications(
  ctx: Ctx,
  { action, daily_digest }: z.output<typeof SetUpNotificationsRequest>,
): Promise<TriggerSchema[]> {
  // Before the transaction: it lists chat channels over the network.
  await validateActions(ctx, [action]);
  await ctx.db.transaction(async (db) => {
    const inside = { ...ctx, db };
    const digest = await systemTriggerId(inside, DAILY_DIGEST);
    for (const { id, actions } of (await listTriggers(inside, ALL_SYSTEM)).filter((one) => one.is_system)) {
      const present = actions as NotifyingAction[];
      if (id === digest && !daily_digest) continue;
      if (present.some((one) => placeOf(one) === placeOf(action))) continue;
      await changeTrigger(inside, id, { actions: [...present, id === digest ? withDigest(action) : action] });
    }
    if (daily_digest) await ensureDigest(inside);
  });
  return (await listTriggers(ctx, ALL_SYSTEM)).filter((one) => one.is_system);
}

async function systemTriggerId({ db, principal }: Ctx, system_key: string): Promise<string | null> {
  const [row] = await db
    .select({ id: triggers.id })
    .from(triggers)
    .where(and(eq(triggers.account_id, principal.account_id), eq(triggers.system_key, system_key)));
  return row?.id ?? null;
}

/** The templates of the action are those of a problem. */
function withDigest(action: NotifyingAction): NotifyingAction {
  const text = '{{ summary }}\n\n{{ digest }}';
  if (action.type === 'send_email')
    return { ...action, subject_template: '{{ summary }}', body_template: '{{ digest }}' };
  return action.type === 'send_chat_message' ? { ...action, message_template: text } : action;
}

function placeOf(action: NotifyingAction): string {
  if (action.type === 'call_webhook') return `webhook ${maskAddress(action.url)}`;
  if (action.type === 'send_email') return `email ${action.recipients.toSorted().join(' ')}`;
  // A built-in trigger may have other actions, too.
  return action.type === 'send_chat_message' ? `chat ${action.account_connector_id} ${action.channel_id}` : '';
}
