import { eq } from 'drizzle-orm';
import { apiKeys, type UserRow, users } from '../../../db/schema/index.ts';
import { releaseHeld } from '../../automation/delivery/quiet-hours.ts';
import { changedColumns, keysOf, pick } from '../../api/changed-columns.ts';
import { badRequest } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { keepingAnAdministrator } from '../access/last-administrator.ts';
import { assignRoles, lockRoles, requireAllOf, rolesOf, unassignRoles } from '../access/memberships.ts';
import { lockUser } from '../access/user.ts';
import { accountPlan, checkLimit } from '../access/account-plan.ts';
import { emitUserEvent } from './events.ts';
import { changedPreferences } from './notification-preferences.ts';
import type { UpdateUserRequest, UserSchema } from './schema.ts';
import { getUser } from './service.ts';

/** Fields that users may change in their own profile. */
const PROFILE = ['full_name', 'timezone', 'locale'] as const;

type Input = UpdateUserRequest & { user_id: string };

/**
 * Changes a user. A request that changes nothing leaves time stamps and events alone.
 * @throws ApiError 403; 404; 400 `immutable_field`, `cannot_disable_self`, `last_administrator`, `invalid_reference`,
 * `cannot_grant_unheld_permission`, `invalid_quiet_hours`; 402, see `checkLimit`.
 */
export async function updateUser(ctx: Ctx, input: Input): Promise<UserSchema> {
  const isSelf = input.user_id.toLowerCase() === ctx.principal.user_id;
  const manages = input.is_active !== undefined || input.role_ids !== undefined;
  if (!isSelf || manages) requirePermission(ctx, 'users.manage');
  const change = () => changeUser(ctx, input, isSelf);
  await (manages ? keepingAnAdministrator(ctx, change) : change());
  return getUser(ctx, input);
}

async function changeUser(ctx: Ctx, input: Input, isSelf: boolean): Promise<void> {
  const user = await lockUser(ctx, input.user_id);
  await requireAllOf(ctx, user);
  if (input.email !== undefined && input.email.toLowerCase() !== user.email.toLowerCase()) {
    throw badRequest('immutable_field', 'email cannot be changed', { field: 'email' });
  }
  if (input.is_active === false && isSelf) throw badRequest('cannot_disable_self', 'You cannot disable yourself');
  if (input.role_ids) await setRoles(ctx, user, [...new Set(input.role_ids)]);
  if (input.is_active !== undefined) await setActive(ctx, user, input.is_active);
  await changeProfile(ctx, user, input);
}

async function changeProfile(ctx: Ctx, user: UserRow, input: Input): Promise<void> {
  const given = input.notification_preferences;
  const preferences = given && { notification_preferences: changedPreferences(user, given) };
  const after = changedColumns(user, { ...pick(input, PROFILE), ...preferences });
  const changed_fields = keysOf(after);
  if (changed_fields.length === 0) return;
  const [changed] = await ctx.db.update(users).set(after).where(eq(users.id, user.id)).returning();
  if (!changed) throw new Error('the locked row no longer exists');
  await emitUserEvent(ctx, 'user_updated', {
    user: changed,
    changed_fields,
    before: pick(user, changed_fields),
    after,
  });
  if (!changed_fields.some((field) => field === 'timezone' || field === 'notification_preferences')) return;
  await releaseHeld(ctx.db, ctx.deps.queue, { account_id: user.account_id, now: ctx.deps.now().toISOString() });
}

async function setRoles(ctx: Ctx, user: UserRow, wanted: string[]): Promise<void> {
  const present = await rolesOf(ctx, user.id);
  const roles = await lockRoles(ctx, wanted);
  const without = (some: typeof roles, others: typeof roles) =>
    some.filter((role) => !others.some((other) => other.id === role.id));
  await assignRoles(ctx, user, without(roles, present));
  await unassignRoles(ctx, user, without(present, roles));
}

/** Enabling a user with an open invitation sets the status back to invited. */
async function setActive(ctx: Ctx, user: UserRow, is_active: boolean): Promise<void> {
  if (is_active === (user.status !== 'disabled')) return;
  if (is_active && user.kind === 'person') await checkLimit(ctx, await accountPlan(ctx), { limit: 'max_users' });
  const status = is_active ? await statusWhenEnabled(ctx, user) : 'disabled';
  const [changed] = await ctx.db.update(users).set({ status }).where(eq(users.id, user.id)).returning();
  if (!changed) throw new Error('the locked row no longer exists');
  await emitUserEvent(ctx, is_active ? 'user_enabled' : 'user_disabled', { user: changed });
}

/** Every user who was ever active has or had a key. */
async function statusWhenEnabled({ db }: Ctx, user: UserRow): Promise<'active' | 'invited'> {
  if (user.kind === 'service_account') return 'active';
  const [key] = await db.select({ id: apiKeys.id }).from(apiKeys).where(eq(apiKeys.user_id, user.id)).limit(1);
  return key ? 'active' : 'invited';
}
