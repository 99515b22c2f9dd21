import { eq, type SQL, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { apiKeys, sessions, users } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import type { Actor } from '../events/emit.ts';
import { isMistyped } from '../platform/api-keys.ts';
import { ApiError } from '../platform/errors.ts';
import type { Permission } from './permissions.ts';

/** Who calls, and what he may do at this moment. */
export interface Principal {
  user_id: string;
  account_id: string;
  name: string;
  email: string;
  permissions: ReadonlySet<Permission>;
  /** The key of this call. */
  api_key_id: string;
}

/** The principal as events name him. */
export const actorOf = (principal: Principal): Actor => ({
  type: 'user',
  id: principal.user_id,
  name: principal.name,
});

const invalid = (message: string) => new ApiError(401, 'invalid_token', message);

export interface Credentials {
  authorization: string | null;
  /** Token of a session of the web console, from a request that its own pages made. A key in the header comes first. */
  session?: string | null;
}

/**
 * Whose key the Authorization header carries, or the session stands on: one indexed query, never cached, so that
 * revoking a key, disabling its user or changing his roles holds from the next request on.
 * @throws ApiError 401 `not_authenticated`, `invalid_token`, `token_expired` or `session_ended`.
 */
export async function authenticate(deps: Deps, { authorization, session }: Credentials): Promise<Principal> {
  const bySession = authorization === null && session;
  const [key] = bySession
    ? await prepared(deps.db).bySession.execute({ hash: deps.secrets.hmac('session', session) })
    : await prepared(deps.db).byKey.execute({ hash: deps.secrets.hmac('api_key', bearerToken(authorization)) });
  if (!key && bySession) throw new ApiError(401, 'session_ended', 'The session has ended');
  if (!key || key.revoked || key.user_deleted) throw invalid('The API key is not valid');
  if (key.user_status !== 'active') throw invalid('The user of this API key is not active');
  if (key.expired) throw new ApiError(401, 'token_expired', 'The API key has expired');
  if (key.stale) noteUse(deps, key.key_id, key.user_id);
  const { user_id, account_id, name, email, key_id: api_key_id } = key;
  return { user_id, account_id, name, email, api_key_id, permissions: permissionSet(key.permissions) };
}

function bearerToken(authorization: string | null): string {
  if (!authorization) throw new ApiError(401, 'not_authenticated', 'Not authenticated');
  const token = /^bearer +([\x21-\x7e]{1,512})$/i.exec(authorization.trim())?.[1];
  if (!token) throw invalid('The Authorization header must be "Bearer <API key>"');
  if (isMistyped(token)) throw invalid('The API key is not valid');
  return token;
}

const permissionSets = new LRUCache<string, ReadonlySet<Permission>>({ max: 1000 });

/** Users with the same permissions share one set: building a set of forty names takes a fifth of the lookup. */
function permissionSet(names: string): ReadonlySet<Permission> {
  const known = permissionSets.get(names);
  if (known) return known;
  const permissions = new Set(names.split(' ').filter(Boolean) as Permission[]);
  permissionSets.set(names, permissions);
  return permissions;
}

/** The clock is the database's: it also wrote `expires_at`. */
const keyQuery = (db: Db, name: string, isMeant: SQL) =>
  db
    .select({
      key_id: apiKeys.id,
      revoked: sql<boolean>`${apiKeys.revoked_at} is not null`,
      expired: sql<boolean>`${apiKeys.expires_at} <= now()`,
      stale: sql<boolean>`coalesce(${apiKeys.last_used_at} < now() - interval '1 minute', true)`,
      user_id: users.id,
      account_id: users.account_id,
      name: users.full_name,
      email: users.email,
      user_status: users.status,
      user_deleted: sql<boolean>`${users.deleted_at} is not null`,
      permissions: sql<string>`array_to_string(array(
        select distinct permission from user_roles
        join roles on roles.id = user_roles.role_id cross join unnest(roles.permissions) as permission
        where user_roles.user_id = ${users.id} and (roles.account_id is null or roles.account_id = ${users.account_id})
        order by permission
      ), ' ')`,
    })
    .from(apiKeys)
    .innerJoin(users, eq(users.id, apiKeys.user_id))
    .where(isMeant)
    .prepare(name);

const keyQueries = (db: Db) => ({
  byKey: keyQuery(db, 'authenticate', eq(apiKeys.hash, sql.placeholder('hash'))),
  bySession: keyQuery(
    db,
    'authenticate_session',
    sql`${apiKeys.id} = (
      select s.api_key_id from ${sessions} s where s.hash = ${sql.placeholder('hash')} and s.expires_at > now())`,
  ),
});

const queries = new WeakMap<Db, ReturnType<typeof keyQueries>>();

function prepared(db: Db) {
  const known = queries.get(db) ?? keyQueries(db);
  queries.set(db, known);
  return known;
}

/** Off the request's path, and at most once a minute for a key: lists show it, nothing depends on it. */
function noteUse(deps: Deps, keyId: string, userId: string): void {
  const now = sql`now()`;
  const due = sql`${apiKeys.id} = ${keyId} and coalesce(${apiKeys.last_used_at} < now() - interval '1 minute', true)`;
  void deps.db
    .update(apiKeys)
    .set({ last_used_at: now })
    .where(due)
    // The column itself: to be seen is no change of the user, and `updated_at` would follow.
    .then(() =>
      deps.db
        .update(users)
        .set({ last_api_request_at: now, updated_at: sql`${users.updated_at}` })
        .where(eq(users.id, userId)),
    )
    .catch((error: unknown) => deps.log.debug({ err: error }, 'the last use of an API key was not noted'));
}
