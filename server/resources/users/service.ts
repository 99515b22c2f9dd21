import { asc, eq } from 'drizzle-orm';
import { accounts, apiKeys, roles, userRoles, users } from '../../../db/schema/index.ts';
import { notFound } from '../../lib/errors.ts';
import type { Ctx } from '../../procedure.ts';
import { PERMISSIONS } from '../../permissions.ts';
import { type ExpandedUserSchema, ONBOARDING_STEPS, type OnboardingStateResponse } from './schema.ts';

const DAY_MS = 86_400_000;
const PLAN_NAMES: Record<string, string> = { self_hosted: 'Self-hosted' };

/** The caller, with his account and the key that he calls with. */
export async function getMe({ db, deps, principal }: Ctx): Promise<ExpandedUserSchema> {
  const [found] = await db
    .select({ user: users, account: accounts, key: apiKeys })
    .from(users)
    .innerJoin(accounts, eq(accounts.id, users.account_id))
    .innerJoin(apiKeys, eq(apiKeys.id, principal.api_key_id))
    .where(eq(users.id, principal.user_id));
  if (!found) throw notFound('User');
  const { user, account, key } = found;
  const now = deps.now();
  return {
    ...user,
    is_active: user.status === 'active',
    is_me: true,
    // Nothing can be uploaded yet.
    avatar_url: null,
    roles: await rolesOf(db, user.id),
    permissions: PERMISSIONS.filter((permission) => principal.permissions.has(permission)),
    account: {
      id: account.id,
      name: account.name,
      plan: { id: account.plan_id, name: PLAN_NAMES[account.plan_id] ?? account.plan_id },
      billing_period: monthOf(now),
      timezone: account.timezone,
    },
    onboarding_state: presentOnboarding(user),
    api_key: { ...key, days_remaining: Math.max(0, Math.floor((Date.parse(key.expires_at) - now.getTime()) / DAY_MS)) },
  };
}

const rolesOf = (db: Ctx['db'], userId: string) =>
  db
    .select({ id: roles.id, name: roles.name })
    .from(userRoles)
    .innerJoin(roles, eq(roles.id, userRoles.role_id))
    .where(eq(userRoles.user_id, userId))
    .orderBy(asc(roles.name));

/** The calendar month in UTC. */
function monthOf(now: Date): { start: string; end: string } {
  const day = (year: number, month: number, date: number) =>
    new Date(Date.UTC(year, month, date)).toISOString().slice(0, 10);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return { start: day(year, month, 1), end: day(year, month + 1, 0) };
}

function presentOnboarding(user: typeof users.$inferSelect): OnboardingStateResponse {
  const stored = user.onboarding_state as Partial<OnboardingStateResponse>;
  const completed_steps = ONBOARDING_STEPS.filter((step) => stored.completed_steps?.includes(step));
  return {
    completed_steps,
    current_step: stored.current_step ?? null,
    dismissed: stored.dismissed ?? false,
    data: stored.data ?? {},
    is_complete: completed_steps.length === ONBOARDING_STEPS.length,
    completed_at: stored.completed_at ?? null,
    updated_at: stored.updated_at ?? user.updated_at,
    progress_percent: Math.round((100 * completed_steps.length) / ONBOARDING_STEPS.length),
  };
}
