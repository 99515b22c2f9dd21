import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { type RoleRow, roles, type UserRow, users } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isUniqueViolation } from '../../api/duplicate-name.ts';
import { assignRoles, lockRoles, requireHeld } from '../access/memberships.ts';
import { accountPlan, checkLimit } from '../access/account-plan.ts';
import { checkUsageRange, type UsageInput } from '../../api/usage-range.ts';
import { emitUserEvent } from './events.ts';
import { makeInvitation } from './invitation.ts';
import type { CreateUserRequest, UserSchema } from './schema.ts';
import { getUser } from './service.ts';
import { requireConfirmed } from '../access/step-up.ts';

/**
 * Invites a user, who becomes active by accepting the invitation.
 * @throws ApiError 400 `email_taken`, `invalid_reference`, `cannot_grant_unheld_permission`; 402, see `checkLimit`.
 */
export async function createUser(ctx: Ctx, input: CreateUserRequest & UsageInput): Promise<UserSchema> {
  if (input.send_invitation) requireConfirmed(ctx);
  checkUsageRange(input.usage);
  const assigned = input.role_ids ? await lockRoles(ctx, [...new Set(input.role_ids)]) : await viewerRole(ctx);
  const permissions = [...new Set(assigned.flatMap((role) => role.permissions))];
  requireHeld(ctx, permissions);
  await requireFreeAddress(ctx, input.email);
  await checkLimit(ctx, await accountPlan(ctx), { limit: 'max_users', range: input.usage });
  const user_id = Bun.randomUUIDv7();
  const invitation = input.send_invitation ? makeInvitation(ctx.deps, { user_id, permissions }) : null;
  const user = await insertUser(ctx, { ...input, user_id }, invitation?.columns);
  await emitUserEvent(ctx, 'user_added', { user, role_names: assigned.map((role) => role.name) });
  await assignRoles(ctx, user, assigned);
  return { ...(await getUser(ctx, { user_id: user.id })), invite_link: invitation?.invite_link ?? null };
}

/** No lock: system roles are never deleted. */
const viewerRole = ({ db }: Ctx): Promise<RoleRow[]> =>
  db
    .select()
    .from(roles)
    .where(and(isNull(roles.account_id), eq(roles.name, 'Viewer')))
    .orderBy(asc(roles.id));

async function requireFreeAddress(ctx: Ctx, email: string): Promise<void> {
  const sameAddress = and(eq(users.account_id, ctx.principal.account_id), sql`lower(${users.email}) = ${email}`);
  const [other] = await ctx.db
    .select({ id: users.id })
    .from(users)
    .where(and(sameAddress, isNull(users.deleted_at)));
  if (other) throw emailTaken(other.id);
}

const emailTaken = (user_id?: string) =>
  badRequest('email_taken', 'Another user of the account has this email address', { field: 'email', user_id });

async function insertUser(
  ctx: Ctx,
  { user_id: id, email, full_name, timezone }: CreateUserRequest & { user_id: string },
  invitation: ReturnType<typeof makeInvitation>['columns'] | undefined,
): Promise<UserRow> {
  const inserting = ctx.db
    .insert(users)
    .values({
      id,
      account_id: ctx.principal.account_id,
      email,
      full_name,
      timezone,
      status: 'invited',
      invited_by: ctx.principal.user_id,
      invited_at: sql`now()`,
      ...invitation,
    })
    .returning();
  try {
    const [user] = await inserting;
    if (!user) throw new Error('the insert returned no row');
    return user;
  } catch (error) {
    // A concurrent request added the address after the check.
    if (isUniqueViolation(error)) throw emailTaken();
    throw error;
  }
}
