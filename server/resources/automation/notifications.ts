import { z } from 'zod';
import { NotifyingAction } from '../../automation/triggers/action-schema.ts';
import { maskAddress } from '../../platform/keyed-address.ts';
import { validateActions } from '../../automation/triggers/validate-actions.ts';
import type { Ctx } from '../../api/procedure.ts';
import { listTriggers } from './triggers-query.ts';
import type { TriggerSchema } from './triggers-schema.ts';
import { changeTrigger } from './triggers-write.ts';

export const SetUpNotificationsRequest = z.strictObject({ action: NotifyingAction }).meta({
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
  { action }: z.output<typeof SetUpNotificationsRequest>,
): Promise<TriggerSchema[]> {
  // Before the transaction: it lists chat channels over the network.
  await validateActions(ctx, [action]);
  await ctx.db.transaction(async (db) => {
    const inside = { ...ctx, db };
    for (const { id, actions } of (await listTriggers(inside, ALL_SYSTEM)).filter((one) => one.is_system)) {
      const present = actions as NotifyingAction[];
      if (present.some((one) => placeOf(one) === placeOf(action))) continue;
      await changeTrigger(inside, id, { actions: [...present, action] });
    }
  });
  return (await listTriggers(ctx, ALL_SYSTEM)).filter((one) => one.is_system);
}

function placeOf(action: NotifyingAction): string {
  if (action.type === 'call_webhook') return `webhook ${maskAddress(action.url)}`;
  if (action.type === 'send_email') return `email ${action.recipients.toSorted().join(' ')}`;
  // A built-in trigger may have other actions, too.
  return action.type === 'send_chat_message' ? `chat ${action.account_connector_id} ${action.channel_id}` : '';
}
