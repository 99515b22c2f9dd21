import { and, desc, eq, lt } from 'drizzle-orm';
import { z } from 'zod';
import { ACTOR_TYPES, SECRET_PURPOSES, secretUses, users } from '../../../../db/schema/index.ts';
import { type Ctx, requirePermission } from '../../../api/procedure.ts';
import { idInBody, instant } from '../../../api/wire-types.ts';
import { findAccountConnector } from '../query.ts';

export const SecretUsesQuery = z.object({
  limit: z.int().min(1).max(500).default(100),
  before: idInBody().optional().meta({ description: 'Id of an entry. Lists the entries before it.' }),
});

export const SecretUseSchema = z
  .object({
    id: z.string(),
    purpose: z.enum(SECRET_PURPOSES),
    host: z.string().meta({ description: 'Name and port, or the name alone for the usual port of an HTTP address.' }),
    actor_type: z.enum(ACTOR_TYPES),
    actor_id: z.string().nullable().meta({ description: 'The user that requested the work.' }),
    actor_name: z.string().nullable(),
    connection_run_id: z.string().nullable(),
    stream_run_id: z.string().nullable(),
    occurred_at: instant(),
  })
  .meta({ id: 'SecretUseSchema' });
export type SecretUseSchema = z.infer<typeof SecretUseSchema>;

/** Where the secrets of a source or destination were used. @throws ApiError 404; 403 */
export async function listSecretUses(
  ctx: Ctx,
  { account_connector_id, limit, before }: z.infer<typeof SecretUsesQuery> & { account_connector_id: string },
): Promise<SecretUseSchema[]> {
  const row = await findAccountConnector(ctx, account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  const rows = await ctx.db
    .select({ use: secretUses, actor_name: users.full_name })
    .from(secretUses)
    .leftJoin(users, eq(users.id, secretUses.actor_id))
    .where(and(eq(secretUses.account_connector_id, row.id), before ? lt(secretUses.id, before) : undefined))
    .orderBy(desc(secretUses.id))
    .limit(limit);
  return rows.map(({ use, actor_name }) => ({ ...use, actor_name }));
}
