import { and, asc, eq, gt, inArray, isNull, sql } from 'drizzle-orm';
import { accounts, apiKeys, roles, userRoles, users } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Config } from '../platform/config.ts';
import { SYSTEM_ACTOR } from '../events/emit.ts';
import { emitUserEvent } from '../events/user-events.ts';
import { ensureSystemTriggers } from '../automation/triggers/system-triggers.ts';
import { API_KEY_DAYS, apiKeyPrefix, makeApiKey } from '../platform/api-keys.ts';
import type { Secrets } from '../platform/secrets.ts';
import { type Permission, SYSTEM_ROLES } from '../api/permissions.ts';

const LOCK = 7_300_003;
const isPerson = eq(users.kind, 'person');

const DESCRIPTIONS: Record<keyof typeof SYSTEM_ROLES, string> = {
  Administrator: 'Full access to the account',
  Creator: 'Creates and runs pipelines, connectors and triggers',
  Billing: 'Views plan, usage and invoices',
  Viewer: 'Views everything except billing',
};

export interface Bootstrapped {
  account_id: string;
  /** The administrator that the key belongs to. */
  user_id: string;
  /** The key itself if it was created just now. It is not stored and cannot be shown again. */
  api_key: string | null;
  /** BOOTSTRAP_API_KEY was revoked, replaced, or belongs to a user who is not an active administrator: it does not work. */
  is_key_ended: boolean;
}

/**
 * Creates the first account, the system roles and the first administrator with an API key if they are missing, and
 * updates the permissions of system roles. Safe on every start and in several processes at once. BOOTSTRAP_API_KEY becomes
 * the key of an administrator at its first start and is renewed when it expires; once revoked it stays revoked. Without
 * it, a key is created if no administrator has a valid one.
 */
export function bootstrap(db: Db, options: { secrets: Secrets; config: Config }): Promise<Bootstrapped> {
  const { secrets, config } = options;
  return db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${LOCK})`);
    const role_id = await systemRoles(tx);
    const account_id = await firstAccount(tx);
    await ensureSystemTriggers(tx);
    const user_id = await administrator(tx, { account_id, role_id, email: config.BOOTSTRAP_EMAIL });
    const owner = { account_id, user_id };
    if (config.BOOTSTRAP_API_KEY !== null) {
      const hash = secrets.hmac('api_key', config.BOOTSTRAP_API_KEY);
      await renewHash(tx, secrets, config.BOOTSTRAP_API_KEY);
      await keepAlive(tx, { ...owner, hash, prefix: apiKeyPrefix(config.BOOTSTRAP_API_KEY) });
      const is_key_ended = !(await anyLiveKey(tx, { account_id, role_id, hash }));
      return { ...owner, api_key: null, is_key_ended };
    }
    if (await anyLiveKey(tx, { account_id, role_id })) return { ...owner, api_key: null, is_key_ended: false };
    const api_key = makeApiKey();
    await keepAlive(tx, { ...owner, hash: secrets.hmac('api_key', api_key), prefix: apiKeyPrefix(api_key) });
    return { ...owner, api_key, is_key_ended: false };
  });
}

/** @returns the id of the role Administrator */
async function systemRoles(tx: Db): Promise<string> {
  const present = await tx.select().from(roles).where(isNull(roles.account_id));
  let administratorId = '';
  for (const [name, granted] of Object.entries(SYSTEM_ROLES) as [keyof typeof SYSTEM_ROLES, readonly Permission[]][]) {
    const permissions = [...granted];
    let role = present.find((one) => one.name === name);
    if (!role) {
      const values = { account_id: null, name, description: DESCRIPTIONS[name], is_system: true, permissions };
      [role] = await tx.insert(roles).values(values).returning();
    } else if (role.permissions.join() !== permissions.join()) {
      await tx.update(roles).set({ permissions }).where(eq(roles.id, role.id));
    }
    if (name === 'Administrator' && role) administratorId = role.id;
  }
  return administratorId;
}

async function firstAccount(tx: Db): Promise<string> {
  const [first] = await tx.select({ id: accounts.id }).from(accounts).orderBy(asc(accounts.created_at)).limit(1);
  if (first) return first.id;
  const [made] = await tx.insert(accounts).values({ name: 'Default' }).returning({ id: accounts.id });
  return made!.id;
}

/** The administrator with the e-mail address, or the oldest active administrator, or a new one. */
async function administrator(tx: Db, wanted: { account_id: string; role_id: string; email: string }): Promise<string> {
  const { account_id, role_id, email } = wanted;
  const [found] = await tx
    .select({ id: users.id })
    .from(users)
    .innerJoin(userRoles, and(eq(userRoles.user_id, users.id), eq(userRoles.role_id, role_id)))
    .where(and(eq(users.account_id, account_id), isPerson, eq(users.status, 'active'), isNull(users.deleted_at)))
    .orderBy(sql`lower(${users.email}) = lower(${email}) desc`, asc(users.created_at))
    .limit(1);
  if (found) return found.id;
  return makeAdministrator(tx, wanted);
}

/** A user with the role Administrator. @returns its id */
export async function makeAdministrator(
  tx: Db,
  wanted: { account_id: string; role_id: string; email: string },
): Promise<string> {
  const { account_id, role_id, email } = wanted;
  // A user with the address may lack the role or be disabled: the operator's setting overrides both.
  const [user] = await tx
    .update(users)
    .set({ status: 'active' })
    .where(
      and(eq(users.account_id, account_id), sql`lower(${users.email}) = lower(${email})`, isNull(users.deleted_at)),
    )
    .returning({ id: users.id });
  const user_id = user?.id ?? (await addUser(tx, { account_id, email }));
  await tx.insert(userRoles).values({ user_id, role_id }).onConflictDoNothing();
  const added = { id: user_id, account_id, email, full_name: 'Administrator' };
  await emitUserEvent({ db: tx, actor: SYSTEM_ACTOR }, 'user_added', { user: added, role_names: ['Administrator'] });
  return user_id;
}

async function addUser(tx: Db, user: { account_id: string; email: string }): Promise<string> {
  const values = { ...user, full_name: 'Administrator', status: 'active' as const };
  const [made] = await tx.insert(users).values(values).returning({ id: users.id });
  return made!.id;
}

/** A key that was stored before a rotation of the root key keeps its row, and stays revoked if it was. */
async function renewHash(tx: Db, secrets: Secrets, api_key: string): Promise<void> {
  const same = eq(apiKeys.prefix, apiKeyPrefix(api_key));
  const stored = await tx.select({ id: apiKeys.id, hash: apiKeys.hash }).from(apiKeys).where(same);
  const former = stored.find(({ hash }) => (secrets.versionOf(hash, 'api_key', api_key) ?? Infinity) < secrets.version);
  if (!former) return;
  const hash = secrets.hmac('api_key', api_key);
  await tx.update(apiKeys).set({ hash }).where(eq(apiKeys.id, former.id));
}

/** Whether an administrator has a valid key: any, or the one with this hash. */
async function anyLiveKey(tx: Db, of: { account_id: string; role_id: string; hash?: string }): Promise<boolean> {
  const administrators = tx.select({ id: userRoles.user_id }).from(userRoles).where(eq(userRoles.role_id, of.role_id));
  const [live] = await tx
    .select({ id: apiKeys.id })
    .from(apiKeys)
    .innerJoin(
      users,
      and(eq(users.id, apiKeys.user_id), isPerson, eq(users.status, 'active'), isNull(users.deleted_at)),
    )
    .where(
      and(
        eq(apiKeys.account_id, of.account_id),
        inArray(apiKeys.user_id, administrators),
        of.hash === undefined ? undefined : eq(apiKeys.hash, of.hash),
        isNull(apiKeys.revoked_at),
        gt(apiKeys.expires_at, sql`now()`),
      ),
    )
    .limit(1);
  return live !== undefined;
}

/** A rotation ends a key before its time and gives its user a newer one. */
const wasReplaced = sql`(
  ${apiKeys.expires_at} < ${apiKeys.created_at} + make_interval(days => ${API_KEY_DAYS}) and exists (
    select from api_keys newer where newer.user_id = ${apiKeys.user_id} and newer.created_at > ${apiKeys.created_at}))`;

/**
 * Creates the key, or renews it if its time has run out. A valid key keeps its expiry; one that was revoked, or replaced
 * before its time, stays ended.
 */
export async function keepAlive(
  tx: Db,
  key: { account_id: string; user_id: string; hash: string; prefix: string },
): Promise<void> {
  const expires_at = sql`now() + make_interval(days => ${API_KEY_DAYS})`;
  await tx
    .insert(apiKeys)
    .values({ ...key, expires_at })
    .onConflictDoUpdate({
      target: apiKeys.hash,
      set: { created_at: sql`now()`, expires_at, announced_days: [] },
      setWhere: sql`${apiKeys.revoked_at} is null and ${apiKeys.expires_at} <= now() and not ${wasReplaced}`,
    });
}
