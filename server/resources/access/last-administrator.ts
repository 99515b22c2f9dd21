import { and, eq, isNull } from 'drizzle-orm';
import { accounts, roles, userRoles, users } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';

/**
 * Runs work that may remove an administrator, one transaction per account at a time. Call it before taking other locks:
 * a different order would deadlock. An account without administrators is not checked.
 * @throws ApiError 400 `last_administrator`, which rolls back the work, when no active user with the role remains.
 */
export async function keepingAnAdministrator<Result>(ctx: Ctx, work: () => Promise<Result>): Promise<Result> {
  // Not `for update`: that would wait for every insert that refers to the account.
  await ctx.db
    .select({ id: accounts.id })
    .from(accounts)
    .where(eq(accounts.id, ctx.principal.account_id))
    .for('no key update');
  const had = await hasAdministrator(ctx);
  const result = await work();
  if (!had || (await hasAdministrator(ctx))) return result;
  throw badRequest('last_administrator', 'At least one active user must have the role Administrator');
}

async function hasAdministrator({ db, principal }: Ctx): Promise<boolean> {
  const [one] = await db
    .select({ id: users.id })
    .from(users)
    .innerJoin(userRoles, eq(userRoles.user_id, users.id))
    .innerJoin(roles, and(eq(roles.id, userRoles.role_id), isNull(roles.account_id), eq(roles.name, 'Administrator')))
    .where(
      and(
        eq(users.account_id, principal.account_id),
        eq(users.kind, 'person'),
        eq(users.status, 'active'),
        isNull(users.deleted_at),
      ),
    )
    .limit(1);
  return one !== undefined;
}
