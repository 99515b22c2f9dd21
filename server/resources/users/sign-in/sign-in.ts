import { and, eq, sql } from 'drizzle-orm';
import { accounts, sessions, userIdentities, type UserRow } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import { noteRefusedOwner, type Principal } from '../../../api/authentication.ts';
import { attribute, type Caller } from '../../../api/audit/record.ts';
import type { Deps } from '../../../deps.ts';
import { SYSTEM_ACTOR } from '../../../events/emit.ts';
import { emitUserEvent } from '../../../events/user-events.ts';
import { accountSuspended, type ApiError } from '../../../platform/errors.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { idTokenContext, storeSession } from '../sessions.ts';
import type { Person } from './claims.ts';
import { userOf } from './find-user.ts';
import { refused } from './refusals.ts';
import { updateRoles } from './update-roles.ts';

/** After a sign-in, keys and secrets may be changed for this long. */
const CONFIRMED_MINUTES = 10;

interface SigningIn {
  settings: ProviderSettings;
  person: Person;
  id_token: string;
  /** The session that this sign-in confirms and replaces. */
  session_id: string | null;
  caller: Caller;
}

/**
 * Opens the session of a person who signed in with a provider. The first sign-in creates the user, each one updates the
 * roles. The token is returned only here.
 * @throws ApiError 403, 402
 */
export async function signInPerson(deps: Deps, signing: SigningIn): Promise<{ token: string; max_age: number }> {
  const { settings, person, caller } = signing;
  const opened = await deps.db.transaction(async (tx) => {
    await attribute(tx, { caller, principal: null, action: 'sign_in' });
    const { user, identity_id, is_new } = await userOf(tx, { person, settings, now: deps.now() });
    const principal = principalOf(user);
    if (user.status === 'disabled') throw owned(principal, disabled(settings));
    if (await isSuspended(tx, user)) throw owned(principal, accountSuspended());
    await attribute(tx, { caller, principal, action: 'sign_in' });
    const id = identity_id ?? (await storeIdentity(tx, { user, person }));
    const { roles, unknown } = await updateRoles(tx, { user, groups: person.groups, settings, is_new });
    if (unknown.length > 0) {
      deps.log.warn({ provider: settings.id, roles: unknown }, 'roles of OIDC_PROVIDERS do not exist');
    }
    if (is_new) {
      const role_names = roles.map(({ name }) => name);
      await emitUserEvent({ db: tx, actor: SYSTEM_ACTOR }, 'user_added', { user, role_names });
    }
    // Returned, not thrown: roles that the provider took away are gone although the person is refused.
    if (person.groups !== null && roles.length === 0) return owned(principal, withoutRole(settings));
    return openFor(tx, deps, { ...signing, principal, identity_id: id });
  });
  if (opened instanceof Error) throw opened;
  return opened;
}

async function isSuspended(tx: Db, { account_id }: UserRow): Promise<boolean> {
  const [account] = await tx.select({ at: accounts.suspended_at }).from(accounts).where(eq(accounts.id, account_id));
  return account?.at !== null;
}

/** Names the user in the entry of the audit log about the refusal. */
function owned(principal: Principal, refusal: ApiError): ApiError {
  noteRefusedOwner(refusal, principal);
  return refusal;
}

const disabled = (settings: ProviderSettings) =>
  refused(settings, 403, 'user_disabled', 'Your user is disabled. Ask an administrator to enable it');

const withoutRole = (settings: ProviderSettings) =>
  refused(settings, 403, 'sign_in_no_role', `None of your groups at ${settings.name} has a role here`);

/** Permissions are looked up at each request; nothing here depends on them. */
const principalOf = ({ id, account_id, full_name, email }: UserRow): Principal => ({
  user_id: id,
  account_id,
  name: full_name,
  email,
  permissions: new Set(),
  api_key_id: null,
});

async function storeIdentity(tx: Db, { user, person }: { user: UserRow; person: Person }): Promise<string> {
  const { issuer, subject } = person;
  const values = { account_id: user.account_id, user_id: user.id, issuer, subject };
  const [stored] = await tx.insert(userIdentities).values(values).returning({ id: userIdentities.id });
  return stored!.id;
}

async function openFor(
  tx: Db,
  deps: Deps,
  opening: SigningIn & { principal: Principal; identity_id: string },
): Promise<{ token: string; max_age: number } | ApiError> {
  const { settings, person, principal, identity_id, caller } = opening;
  if (opening.session_id !== null && !(await endReplaced(tx, { id: opening.session_id, identity_id }))) {
    const message = `You signed in at ${settings.name} as another person. Sign in as the user of this session`;
    return owned(principal, refused(settings, 403, 'sign_in_other_user', message));
  }
  const now = sql`now()`;
  await tx.update(userIdentities).set({ last_sign_in_at: now }).where(eq(userIdentities.id, identity_id));
  const hours = deps.config.SESSION_MAX_HOURS;
  const proved = person.signed_in_at;
  const session = {
    identity_id,
    provider: settings.id,
    id_token: deps.secrets.seal(opening.id_token, idTokenContext(identity_id)),
    // The clock of the provider may be ahead.
    confirmed_until:
      proved === null ? null : sql`least(now(), to_timestamp(${proved})) + make_interval(mins => ${CONFIRMED_MINUTES})`,
  };
  const details = { provider: settings.id, issuer: person.issuer, subject: person.subject };
  const { token } = await storeSession(tx, deps, { principal, caller, session, hours, details });
  return { token, max_age: hours * 3600 };
}

async function endReplaced(tx: Db, { id, identity_id }: { id: string; identity_id: string }): Promise<boolean> {
  const same = and(eq(sessions.id, id), eq(sessions.identity_id, identity_id));
  return (await tx.delete(sessions).where(same).returning({ id: sessions.id })).length > 0;
}
