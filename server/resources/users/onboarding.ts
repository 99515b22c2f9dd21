import { eq } from 'drizzle-orm';
import { type UserRow, users } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { changedColumns, keysOf } from '../../api/changed-columns.ts';
import { lockUser } from '../access/user.ts';
import { emitUserEvent } from './events.ts';
import { ONBOARDING_STEPS, type OnboardingStateResponse, type OnboardingStateSchema } from './schema.ts';

/** Replaces the caller's whole state. The time of completion stays until a step is undone. */
export async function putOnboardingState(ctx: Ctx, input: OnboardingStateSchema): Promise<OnboardingStateResponse> {
  const user = await lockUser(ctx, ctx.principal.user_id);
  const before = presentOnboarding(user);
  const completed_steps = stepsAmong(input.completed_steps);
  const { dismissed, data } = input;
  const wanted = { completed_steps, current_step: input.current_step ?? null, dismissed, data };
  if (keysOf(changedColumns(before, wanted)).length === 0) return before;
  const now = ctx.deps.now().toISOString();
  const completed_at = isComplete(completed_steps) ? (before.completed_at ?? now) : null;
  const onboarding_state = { ...wanted, completed_at, updated_at: now };
  await ctx.db.update(users).set({ onboarding_state }).where(eq(users.id, user.id));
  await emitUserEvent(ctx, 'user_updated', { user, changed_fields: ['onboarding_state'] });
  return presentOnboarding({ ...user, onboarding_state });
}

/** The stored state with derived values; the initial state when none is stored. */
export function presentOnboarding(user: Pick<UserRow, 'onboarding_state' | 'created_at'>): OnboardingStateResponse {
  const stored = user.onboarding_state as Partial<OnboardingStateResponse>;
  const completed_steps = stepsAmong(stored.completed_steps ?? []);
  return {
    completed_steps,
    current_step: stored.current_step ?? null,
    dismissed: stored.dismissed ?? false,
    data: stored.data ?? {},
    is_complete: isComplete(completed_steps),
    completed_at: stored.completed_at ?? null,
    updated_at: stored.updated_at ?? user.created_at,
    progress_percent: Math.round((100 * completed_steps.length) / ONBOARDING_STEPS.length),
  };
}

type Step = (typeof ONBOARDING_STEPS)[number];

/** Without duplicates, in display order. */
const stepsAmong = (steps: readonly Step[]) => ONBOARDING_STEPS.filter((step) => steps.includes(step));
const isComplete = (steps: readonly Step[]) => steps.length === ONBOARDING_STEPS.length;
