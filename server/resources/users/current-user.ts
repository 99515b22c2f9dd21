import { eq, sql } from 'drizzle-orm';
import { accounts, apiKeys } from '../../../db/schema/index.ts';
import { notFound } from '../../platform/errors.ts';
import { planOf } from '../../pipeline/billing-plans.ts';
import { billingPeriod, utcDay } from '../../platform/utc-days.ts';
import { PERMISSIONS } from '../../api/permissions.ts';
import type { Ctx } from '../../api/procedure.ts';
import { preferencesOf } from './notification-preferences.ts';
import { presentOnboarding } from './onboarding.ts';
import { presentUser, selectUser } from './query.ts';
import type { ExpandedUserSchema } from './schema.ts';

const DAY_MS = 86_400_000;

/** The caller with the account and the API key of the request. */
export async function getMe(ctx: Ctx): Promise<ExpandedUserSchema> {
  const { db, deps, principal } = ctx;
  const record = await selectUser(ctx, { id: principal.user_id, account_id: principal.account_id });
  const [found] = await db
    .select({ account: accounts, key: apiKeys })
    .from(accounts)
    .leftJoin(apiKeys, principal.api_key_id === null ? sql`false` : eq(apiKeys.id, principal.api_key_id))
    .where(eq(accounts.id, principal.account_id));
  if (!found) throw notFound('User');
  const { account, key } = found;
  const now = deps.now();
  return {
    ...presentUser(ctx, record),
    is_me: true,
    permissions: PERMISSIONS.filter((permission) => principal.permissions.has(permission)),
    account: {
      id: account.id,
      name: account.name,
      plan: planOf(account.plan_id),
      billing_period: billingPeriod(account.billing_anchor, utcDay(now)),
      timezone: account.timezone,
    },
    onboarding_state: presentOnboarding(record.user),
    api_key: key && {
      ...key,
      days_remaining: Math.max(0, Math.floor((Date.parse(key.expires_at) - now.getTime()) / DAY_MS)),
    },
    notification_preferences: preferencesOf(record.user),
  };
}
