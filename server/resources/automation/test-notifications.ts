import { z } from 'zod';
import { ACTION_TYPES } from '../../../db/schema/closed-sets.ts';
import { sendTest, type TestedAction } from '../../automation/delivery/send-test.ts';
import { isNotification, NotifyingAction } from '../../automation/triggers/action-schema.ts';
import { sealActions } from '../../automation/triggers/action-secrets.ts';
import { validateActions } from '../../automation/triggers/validate-actions.ts';
import type { Ctx } from '../../api/procedure.ts';
import { idInBody } from '../../api/wire-types.ts';
import { badRequest } from '../../platform/errors.ts';
import { findTriggerRow } from './triggers-query.ts';

const TIMEOUT_MS = 30_000;

export const TestNotificationsRequest = z
  .strictObject({
    action: NotifyingAction.optional().meta({
      description: 'What to test. With `trigger_id`, masked secrets are those of the trigger.',
    }),
    trigger_id: idInBody()
      .optional()
      .meta({ description: 'Without `action`, tests every notification of the trigger.' }),
  })
  .refine((body) => body.action !== undefined || body.trigger_id !== undefined, 'action or trigger_id is required')
  .meta({
    id: 'TestNotificationsRequest',
    examples: [{ action: { type: 'call_webhook', url: 'https://example.com/problems' } }],
  });
type TestNotificationsRequest = z.infer<typeof TestNotificationsRequest>;

export const TestedNotification = z
  .object({
    type: z.enum(ACTION_TYPES),
    is_sent: z.boolean(),
    error: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .meta({ description: 'Why it was not sent, or which recipients were rejected.' }),
  })
  .meta({ id: 'TestedNotification' });

/**
 * Sends test messages at once, without storing or repeating them.
 * @throws ApiError 400 `no_notifications`, and as `validateActions`; 404
 */
export async function testNotifications(ctx: Ctx, input: TestNotificationsRequest): Promise<TestedAction[]> {
  const stored = input.trigger_id === undefined ? null : await findTriggerRow(ctx, input.trigger_id);
  const { account_id } = ctx.principal;
  const base = stored ?? {
    id: Bun.randomUUIDv7(),
    account_id,
    name: 'Notifications',
    severity: 'info' as const,
    matched_kinds: null,
  };
  if (input.action) await validateActions(ctx, [input.action]);
  const actions = input.action
    ? sealActions(ctx.deps.secrets, { trigger: base, actions: [input.action], before: stored })
    : { actions: stored?.actions ?? [], secrets: stored?.secrets ?? null };
  const trigger = { ...base, ...actions };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const tested: TestedAction[] = [];
  for (const [action_index, { type }] of trigger.actions.entries()) {
    if (isNotification(String(type))) tested.push(await sendTest(ctx.deps, { trigger, action_index, signal }));
  }
  if (tested.length === 0) throw badRequest('no_notifications', 'The trigger has no action that notifies');
  return tested;
}
