import { randomBytes } from 'node:crypto';
import { eq, lt, sql } from 'drizzle-orm';
import { sessions, users } from '../../../db/schema/index.ts';
import { authenticate } from '../../api/authentication.ts';
import type { Deps } from '../../deps.ts';
import { emitUserEvent } from '../../events/user-events.ts';
import { actorOf } from '../../api/procedure.ts';
import { rolesOf } from '../access/memberships.ts';

/** Maximum lifetime of a session. It ends earlier when its API key ends. */
export const SESSION_DAYS = 30;

/**
 * Signs in to the web console with an API key. The token is returned only here; the database stores its hash.
 * @throws ApiError 401 as `authenticate`.
 */
export async function openSession(deps: Deps, api_key: string): Promise<{ token: string }> {
  const principal = await authenticate(deps, { authorization: `Bearer ${api_key}` });
  const token = randomBytes(32).toString('base64url');
  const now = sql`now()`;
  await deps.db.transaction(async (tx) => {
    await tx.delete(sessions).where(lt(sessions.expires_at, now));
    await tx.insert(sessions).values({
      api_key_id: principal.api_key_id,
      hash: deps.secrets.hmac('session', token),
      expires_at: sql`now() + make_interval(days => ${SESSION_DAYS})`,
    });
    await tx
      .update(users)
      .set({ last_login_at: now, updated_at: sql`${users.updated_at}` })
      .where(eq(users.id, principal.user_id));
    const { user_id: id, account_id, email, name: full_name } = principal;
    await emitUserEvent({ db: tx, actor: actorOf(principal) }, 'user_logged_in', {
      user: { id, account_id, email, full_name },
      role_names: (await rolesOf({ db: tx }, id)).map((role) => role.name),
    });
  });
  return { token };
}

/** Ends a session. Unknown sessions are not an error. */
export async function endSession(deps: Deps, token: string): Promise<void> {
  await deps.db.delete(sessions).where(eq(sessions.hash, deps.secrets.hmac('session', token)));
}
