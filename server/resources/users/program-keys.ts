import { and, count, eq, isNotNull } from 'drizzle-orm';
import { apiKeys } from '../../../db/schema/index.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { badRequest } from '../../platform/errors.ts';
import { requireAllOf } from '../access/memberships.ts';
import { lockUser } from '../access/user.ts';
import { causedBy } from './events.ts';
import { isLive, issueKey } from './issue-key.ts';
import type { CreateKeyRequest, NewApiKey } from './key-schema.ts';
import { requireConfirmed } from '../access/step-up.ts';

const MAX_PROGRAM_KEYS = 50;

/**
 * Creates a key with a name for the caller or for a service account, returned only here. The key may use the scopes that
 * its user also has the permissions for, at the time of each request.
 * @throws ApiError 404; 403; 400 `not_a_service_account`, `scope_exceeds_key`, `too_many_keys`.
 */
export async function createKey(ctx: Ctx, input: CreateKeyRequest): Promise<NewApiKey> {
  requireConfirmed(ctx);
  const user = await lockUser(ctx, input.user_id ?? ctx.principal.user_id);
  if (user.id !== ctx.principal.user_id) {
    requirePermission(ctx, 'users.manage');
    if (user.kind !== 'service_account') {
      throw badRequest('not_a_service_account', 'Keys of other people cannot be created: use a service account', {
        field: 'user_id',
      });
    }
    await requireAllOf(ctx, user);
  }
  const scopes = input.scopes && [...new Set(input.scopes)].toSorted();
  await refuseWider(ctx, scopes);
  await refuseTooMany(ctx, user.id);
  const program = { name: input.name, scopes, days: input.expires_in_days };
  return issueKey(causedBy(ctx), { user, secrets: ctx.deps.secrets, event: 'api_key_created', program });
}

/** A key with scopes must not create one with more. */
async function refuseWider(ctx: Ctx, scopes: string[] | null): Promise<void> {
  if (ctx.principal.api_key_id === null) return;
  const [own] = await ctx.db
    .select({ scopes: apiKeys.scopes })
    .from(apiKeys)
    .where(eq(apiKeys.id, ctx.principal.api_key_id));
  const allowed = own?.scopes;
  if (!allowed || scopes?.every((scope) => allowed.includes(scope))) return;
  throw badRequest('scope_exceeds_key', `The key of this call is limited to ${allowed.join(', ')}`, {
    field: 'scopes',
  });
}

async function refuseTooMany(ctx: Ctx, user_id: string): Promise<void> {
  const [live] = await ctx.db
    .select({ n: count() })
    .from(apiKeys)
    .where(and(eq(apiKeys.user_id, user_id), isNotNull(apiKeys.name), isLive()));
  if ((live?.n ?? 0) < MAX_PROGRAM_KEYS) return;
  throw badRequest(
    'too_many_keys',
    `A user has at most ${MAX_PROGRAM_KEYS} keys with a name. Revoke one that is not used`,
    {
      limit: MAX_PROGRAM_KEYS,
    },
  );
}
