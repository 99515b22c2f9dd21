import { randomBytes } from 'node:crypto';
import { and, eq, isNull, ne, sql } from 'drizzle-orm';
import { users } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Secrets } from '../../platform/secrets.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import { requireHeld, rolesOf } from '../access/memberships.ts';
import { lockUser } from '../access/user.ts';
import { emitUserEvent, emitUserEventAs } from './events.ts';
import { issueKey } from './issue-key.ts';
import type { AcceptedInvitation, Invitation } from './key-schema.ts';
import { presentUser, selectUser } from './query.ts';
import { requireConfirmed } from '../access/step-up.ts';

const INVITATION_DAYS = 7;
/** Matches no user. */
const NO_USER = '00000000-0000-0000-0000-000000000000';

/** The token is in the fragment: browsers do not send it to servers, so it appears in no log. */
const linkWith = ({ BASE_PATH }: Ctx['deps']['config'], token: string) => `${BASE_PATH}/invitation#token=${token}`;

interface Invited {
  user_id: string;
  /** What the user may do at the moment. */
  permissions: readonly string[];
}

/**
 * A new link and the columns that verify it. The hash covers the permissions of the user, so that the link ends when they
 * change: it never gives more than its creator gave.
 */
export function makeInvitation({ secrets, config }: Ctx['deps'], invited: Invited) {
  const token = `${invited.user_id}.${randomBytes(32).toString('base64url')}`;
  return {
    invite_link: linkWith(config, token),
    columns: {
      invitation_hash: hashesOf(secrets, token, invited)[0]!,
      invitation_expires_at: sql`now() + make_interval(days => ${INVITATION_DAYS})`,
    },
  };
}

const hashesOf = (secrets: Secrets, token: string, { user_id, permissions }: Invited): string[] =>
  secrets.hmacs('invitation', JSON.stringify([token, user_id, permissions.toSorted()]));

const permissionsOf = async (ctx: Pick<Ctx, 'db'>, user_id: string): Promise<string[]> => [
  ...new Set((await rolesOf(ctx, user_id)).flatMap((role) => role.permissions)),
];

/**
 * Creates a new link for a user who lost the link or the key; the previous link ends. The link gives access to all that
 * the user can do, so the caller must hold the same permissions.
 * @throws ApiError 404; 400 `is_service_account`, `user_disabled`, `cannot_grant_unheld_permission`.
 */
export async function inviteUser(ctx: Ctx, { user_id }: { user_id: string }): Promise<Invitation> {
  requireConfirmed(ctx);
  const user = await lockUser(ctx, user_id);
  if (user.kind === 'service_account') {
    throw badRequest('is_service_account', 'A service account cannot be invited. Create a key for it');
  }
  if (user.status === 'disabled') throw badRequest('user_disabled', 'A disabled user cannot be invited');
  const permissions = await permissionsOf(ctx, user.id);
  requireHeld(ctx, permissions);
  const { invite_link, columns } = makeInvitation(ctx.deps, { user_id: user.id, permissions });
  const [invited] = await ctx.db
    .update(users)
    .set({ ...columns, invited_by: ctx.principal.user_id, invited_at: sql`now()` })
    .where(eq(users.id, user.id))
    .returning();
  await emitUserEvent(ctx, 'user_updated', { user, changed_fields: ['invitation'] });
  return { user_id: user.id, invite_link, expires_at: invited!.invitation_expires_at! };
}

/**
 * Accepts an invitation, once: the user becomes active and gets an API key, returned only here.
 * @throws ApiError 400 `invalid_invitation`.
 */
export async function acceptInvitation(
  { deps, db: attributed }: Pick<Ctx, 'deps' | 'db'>,
  { token }: { token: string },
): Promise<AcceptedInvitation> {
  const user_id = token.slice(0, token.indexOf('.'));
  const invited = and(
    eq(users.id, isId(user_id) ? user_id : NO_USER),
    sql`${users.invitation_expires_at} > now()`,
    ne(users.status, 'disabled'),
    isNull(users.deleted_at),
  );
  return attributed.transaction(async (db) => {
    // A concurrent request waits for the lock and then no longer matches.
    const [before] = await db.select().from(users).where(invited).for('no key update');
    const permissions = before ? await permissionsOf({ db }, before.id) : [];
    const hashes = hashesOf(deps.secrets, token, { user_id, permissions });
    if (!before?.invitation_hash || !hashes.includes(before.invitation_hash)) {
      throw badRequest(
        'invalid_invitation',
        'The invitation is invalid, already used or expired, or the permissions of the user changed since. Request a new one',
      );
    }
    const user = { ...before, status: 'active' as const, invitation_hash: null, invitation_expires_at: null };
    const { status, invitation_hash, invitation_expires_at } = user;
    await db.update(users).set({ status, invitation_hash, invitation_expires_at }).where(eq(users.id, user.id));
    const actor = { type: 'user' as const, id: user.id, name: user.full_name };
    if (before.status === 'invited') {
      await emitUserEventAs({ db, actor }, 'user_updated', { user, changed_fields: ['status'] });
    }
    const key = await issueKey({ db, actor }, { user, secrets: deps.secrets, event: 'api_key_created' });
    return { ...key, user: presentUser({ deps }, await selectUser({ db }, user)) };
  });
}
