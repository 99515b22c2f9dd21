import { and, eq, isNull } from 'drizzle-orm';
import { type UserRow, users } from '../../../db/schema/index.ts';
import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';

/** A user of the caller's account, locked until the transaction ends. @throws ApiError 404 */
export async function lockUser(ctx: Ctx, id: string): Promise<UserRow> {
  const owned = and(eq(users.id, id), eq(users.account_id, ctx.principal.account_id), isNull(users.deleted_at));
  const [row] = isId(id) ? await ctx.db.select().from(users).where(owned).for('no key update') : [];
  if (!row) throw notFound('User');
  return row;
}
