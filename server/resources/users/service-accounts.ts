import { and, desc, eq, isNull, sql } from 'drizzle-orm';
import { apiKeys, users } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { assignRoles, lockRoles, requireHeld } from '../access/memberships.ts';
import { emitUserEvent } from './events.ts';
import { isLive } from './issue-key.ts';
import { rolesJson } from './query.ts';
import type { CreateServiceAccountRequest, ServiceAccountSchema } from './service-account-schema.ts';

/** Reserved by RFC 2606: mail to it reaches no host. */
const NO_MAIL = 'service-accounts.invalid';

/**
 * Creates a user for a program. It has no key yet.
 * @throws ApiError 400 `invalid_reference`, `cannot_grant_unheld_permission`.
 */
export async function createServiceAccount(
  ctx: Ctx,
  { name, role_ids }: CreateServiceAccountRequest,
): Promise<ServiceAccountSchema> {
  const assigned = await lockRoles(ctx, [...new Set(role_ids)]);
  requireHeld(ctx, [...new Set(assigned.flatMap((role) => role.permissions))]);
  const id = Bun.randomUUIDv7();
  const { account_id, user_id } = ctx.principal;
  const [user] = await ctx.db
    .insert(users)
    .values({
      id,
      account_id,
      kind: 'service_account',
      email: `${id}@${NO_MAIL}`,
      full_name: name,
      status: 'active',
      invited_by: user_id,
    })
    .returning();
  await emitUserEvent(ctx, 'user_added', { user: user!, role_names: assigned.map((role) => role.name) });
  await assignRoles(ctx, user!, assigned);
  const [created] = await select(ctx, id);
  return created!;
}

/** The account's service accounts, newest first. */
export const listServiceAccounts = (ctx: Ctx): Promise<ServiceAccountSchema[]> => select(ctx);

async function select({ db, principal }: Ctx, id?: string): Promise<ServiceAccountSchema[]> {
  const live = db.$count(apiKeys, and(sql`${apiKeys.user_id} = users.id`, isLive()));
  const rows = await db
    .select({ user: users, roles: rolesJson, live_keys: live })
    .from(users)
    .where(
      and(
        eq(users.account_id, principal.account_id),
        eq(users.kind, 'service_account'),
        isNull(users.deleted_at),
        id === undefined ? undefined : eq(users.id, id),
      ),
    )
    .orderBy(desc(users.created_at), desc(users.id));
  return rows.map(({ user, roles, live_keys }) => ({
    id: user.id,
    name: user.full_name,
    is_active: user.status === 'active',
    roles,
    live_keys,
    last_used_at: user.last_api_request_at,
    created_at: user.created_at,
  }));
}
