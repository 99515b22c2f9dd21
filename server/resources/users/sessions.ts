import { randomBytes, timingSafeEqual } from 'node:crypto';
import { and, desc, eq, gt, inArray, isNotNull, isNull, lt, not, or, type SQL, sql } from 'drizzle-orm';
import { apiKeys, sessions, userIdentities, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { authenticate, type Principal } from '../../api/authentication.ts';
import { type Caller, recordCall } from '../../api/audit/record.ts';
import type { Deps } from '../../deps.ts';
import { emitUserEvent } from '../../events/user-events.ts';
import { actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import { ApiError, badRequest, notFound } from '../../platform/errors.ts';
import { isId } from '../../api/wire-types.ts';
import { requireAllOf, rolesOf } from '../access/memberships.ts';
import type { SessionSchema } from './session-schema.ts';
import { manageableUser } from './query.ts';

/** Maximum lifetime of a session. It ends earlier when its API key ends. */
export const SESSION_DAYS = 30;

/**
 * Signs in to the web console with an API key. The token is returned only here; the database stores its hash.
 * @throws ApiError 401 as `authenticate`; 403 `is_service_account`.
 */
export async function openSession(deps: Deps, api_key: string, caller: Caller): Promise<{ token: string }> {
  const principal = await authenticate(deps, { authorization: `Bearer ${api_key}` });
  await refuseServiceAccount(deps, principal.user_id);
  const session = { api_key_id: principal.api_key_id };
  return deps.db.transaction((tx) => storeSession(tx, deps, { principal, caller, session, hours: SESSION_DAYS * 24 }));
}

type NewSession = typeof sessions.$inferInsert;

interface Opening {
  principal: Principal;
  caller: Caller;
  session: Omit<NewSession, 'hash' | 'expires_at' | 'confirmed_until'> & { confirmed_until?: SQL | null };
  hours: number;
  /** Of the entry in the audit log. */
  details?: Record<string, unknown>;
}

/** Stores a session with its event and entry in the audit log, and deletes those that have ended. */
export async function storeSession(tx: Db, deps: Deps, opening: Opening): Promise<{ token: string }> {
  const { principal, caller, session, hours, details } = opening;
  const token = randomBytes(32).toString('base64url');
  const now = sql`now()`;
  await tx.delete(sessions).where(or(lt(sessions.expires_at, now), not(isUsed(deps))));
  const hash = deps.secrets.hmac('session', token);
  const expires_at = sql`now() + make_interval(hours => ${hours}::int)`;
  const [opened] = await tx
    .insert(sessions)
    .values({ ...session, hash, expires_at })
    .returning({ id: sessions.id });
  const call = { caller, principal, action: 'sign_in' };
  await recordCall(tx, call, { kind: 'sign_in', session_id: opened!.id, details });
  await tx
    .update(users)
    .set({ last_login_at: now, updated_at: sql`${users.updated_at}` })
    .where(eq(users.id, principal.user_id));
  const { user_id: id, account_id, email, name: full_name } = principal;
  await emitUserEvent({ db: tx, actor: actorOf(principal) }, 'user_logged_in', {
    user: { id, account_id, email, full_name },
    role_names: (await rolesOf({ db: tx }, id)).map((role) => role.name),
  });
  return { token };
}

async function refuseServiceAccount({ db }: Deps, user_id: string): Promise<void> {
  const [user] = await db.select({ kind: users.kind }).from(users).where(eq(users.id, user_id));
  if (user?.kind !== 'service_account') return;
  throw new ApiError(403, 'is_service_account', 'A service account cannot sign in to the console. Use your own key');
}

/** Ends a session, and returns the sign-in that it came from. Null: a session of a key. Unknown sessions are not an error. */
export async function endSession(
  deps: Deps,
  token: string,
  caller: Caller,
): Promise<{ provider: string; id_token: string | null } | null> {
  const principal = await authenticate(deps, { authorization: null, session: token }).catch((error: unknown) => {
    if (error instanceof ApiError) return null;
    throw error;
  });
  return deps.db.transaction(async (tx) => {
    const hashes = deps.secrets.hmacs('session', token);
    const [ended] = await tx.delete(sessions).where(inArray(sessions.hash, hashes)).returning();
    if (!ended) return null;
    await recordCall(tx, { caller, principal, action: 'sign_out' }, { kind: 'sign_out', session_id: ended.id });
    const { provider, identity_id, id_token: sealed } = ended;
    if (provider === null) return null;
    return { provider, id_token: sealed === null ? null : deps.secrets.open(sealed, idTokenContext(identity_id!)) };
  });
}

/** Binds the encrypted ID token of a session to the person. */
export const idTokenContext = (identity_id: string) => `id_token:${identity_id}`;

const CONFIRMED_MINUTES = 5;

/** Not idle for too long. */
const isUsed = ({ config }: Pick<Deps, 'config'>) =>
  sql`${sessions.last_used_at} > now() - make_interval(hours => ${config.SESSION_IDLE_HOURS}::int)`;

/** Confirms the session of the call with its API key. @throws ApiError 400 `no_session`, `no_api_key`, `wrong_api_key` */
export async function confirmSession(ctx: Ctx, { api_key }: { api_key: string }): Promise<void> {
  const { session, api_key_id } = ctx.principal;
  if (!session) throw badRequest('no_session', 'The call uses an API key, so there is no session to confirm');
  if (api_key_id === null)
    throw badRequest('no_api_key', 'This session belongs to no API key. Sign in again to confirm it');
  const [key] = await ctx.db.select({ hash: apiKeys.hash }).from(apiKeys).where(eq(apiKeys.id, api_key_id));
  const stored = Buffer.from(key?.hash ?? '');
  const given = ctx.deps.secrets.hmacs('api_key', api_key).map((text) => Buffer.from(text));
  if (!given.some((one) => stored.length === one.length && timingSafeEqual(stored, one))) {
    throw badRequest('wrong_api_key', 'This is not the API key of the session. Enter the key that you signed in with', {
      field: 'api_key',
    });
  }
  await ctx.db
    .update(sessions)
    .set({ confirmed_until: sql`now() + make_interval(mins => ${CONFIRMED_MINUTES})` })
    .where(eq(sessions.id, session.id));
}

/** The open sessions of the caller, or of a user whom the caller may manage; the latest use first. */
export async function listSessions(ctx: Ctx, { user_id }: { user_id?: string }): Promise<SessionSchema[]> {
  const of = await manageableUser(ctx, user_id);
  const now = sql`now()`;
  const rows = await ctx.db
    .select({ session: sessions, key_prefix: apiKeys.prefix })
    .from(sessions)
    .leftJoin(apiKeys, eq(apiKeys.id, sessions.api_key_id))
    .leftJoin(userIdentities, eq(userIdentities.id, sessions.identity_id))
    .where(
      and(
        eq(ownerOf, of),
        or(isNotNull(sessions.identity_id), and(isNull(apiKeys.revoked_at), gt(apiKeys.expires_at, now))),
        gt(sessions.expires_at, now),
        isUsed(ctx.deps),
      ),
    )
    .orderBy(desc(sessions.last_used_at), desc(sessions.id));
  return rows.map(({ session, key_prefix }) => ({
    ...session,
    key_prefix,
    is_current: session.id === ctx.principal.session?.id,
  }));
}

/** The user of a session that is joined with its key and its identity. */
const ownerOf = sql<string>`coalesce(${apiKeys.user_id}, ${userIdentities.user_id})`;

/** Ends a session of the caller, or of a user whom the caller may manage. @throws ApiError 404; 403 */
export async function endListedSession(ctx: Ctx, { session_id }: { session_id: string }): Promise<void> {
  if (!isId(session_id)) throw notFound('Session');
  const [found] = await ctx.db
    .select({ user_id: users.id })
    .from(sessions)
    .leftJoin(apiKeys, eq(apiKeys.id, sessions.api_key_id))
    .leftJoin(userIdentities, eq(userIdentities.id, sessions.identity_id))
    .innerJoin(users, eq(users.id, ownerOf))
    .where(and(eq(sessions.id, session_id), eq(users.account_id, ctx.principal.account_id)));
  if (found?.user_id !== ctx.principal.user_id) requirePermission(ctx, 'users.manage');
  if (!found) throw notFound('Session');
  await requireAllOf(ctx, { id: found.user_id });
  await ctx.db.delete(sessions).where(eq(sessions.id, session_id));
}
