import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { accounts, userIdentities, type UserRow, users } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import { isUniqueViolation } from '../../../api/duplicate-name.ts';
import { readAccountPlan } from '../../../billing/account-plan.ts';
import { requireRoom } from '../../../billing/limits.ts';
import { SYSTEM_ACTOR } from '../../../events/emit.ts';
import { emitUserEvent } from '../../../events/user-events.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import type { Person } from './claims.ts';
import { refused } from './refusals.ts';

interface Found {
  user: UserRow;
  /** Null: the first sign-in of this person. */
  identity_id: string | null;
  /** The sign-in has created the user. */
  is_new: boolean;
}

/** The user of a person, locked, or a new one. @throws ApiError 403, 402 */
export async function userOf(
  tx: Db,
  { person, settings, now }: { person: Person; settings: ProviderSettings; now: Date },
): Promise<Found> {
  const account_id = await accountOf(tx, { person, settings });
  const key = JSON.stringify([person.issuer, person.subject]);
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`);
  const [known] = await tx
    .select({ user: users, identity_id: userIdentities.id })
    .from(userIdentities)
    .innerJoin(users, eq(users.id, userIdentities.user_id))
    .where(and(eq(userIdentities.issuer, person.issuer), eq(userIdentities.subject, person.subject)))
    .for('no key update', { of: users });
  if (!known) return { identity_id: null, ...(await firstSignIn(tx, { person, settings, account_id, now })) };
  if (known.user.account_id !== account_id) {
    const message = `${settings.name} now names another account for you. An administrator has to delete your user first`;
    throw refused(settings, 403, 'sign_in_account_changed', message);
  }
  return { ...known, is_new: false };
}

async function accountOf(
  tx: Db,
  { person, settings }: { person: Person; settings: ProviderSettings },
): Promise<string> {
  const { account, account_claim } = settings;
  const wanted = account_claim === null ? account : claimedAccount(person, settings);
  const ids = tx.select({ id: accounts.id }).from(accounts);
  const [found] = await (wanted === null
    ? ids.orderBy(asc(accounts.created_at))
    : ids.where(eq(accounts.id, wanted))
  ).limit(1);
  if (found) return found.id;
  throw refused(settings, 403, 'sign_in_account_unknown', `The account of ${settings.name} does not exist here`);
}

function claimedAccount({ tenant }: Person, settings: ProviderSettings): string {
  const account = tenant !== null && Object.hasOwn(settings.accounts, tenant) ? settings.accounts[tenant] : undefined;
  if (account) return account;
  const message = `${settings.name} names no account for you. An operator adds its value to accounts in OIDC_PROVIDERS`;
  throw refused(settings, 403, 'sign_in_account_unknown', message);
}

interface Arriving {
  person: Person;
  settings: ProviderSettings;
  account_id: string;
  now: Date;
}

async function firstSignIn(tx: Db, arriving: Arriving): Promise<Pick<Found, 'user' | 'is_new'>> {
  const { person, settings, account_id } = arriving;
  const same = await tx
    .select()
    .from(users)
    .where(and(sql`lower(${users.email}) = ${person.email}`, isNull(users.deleted_at)))
    .for('no key update');
  const own = same.find((one) => one.account_id === account_id && one.kind === 'person');
  if (own && settings.link_by_email && person.is_verified) return { user: await activated(tx, own), is_new: false };
  if (same.length > 0) {
    const message = `Another user has the address ${person.email}, and ${settings.name} does not sign in existing users`;
    throw refused(settings, 403, 'sign_in_email_taken', message);
  }
  if (!settings.create_users) {
    const message = `${person.email} has no user here. Ask an administrator to create one`;
    throw refused(settings, 403, 'sign_in_user_unknown', message);
  }
  return { user: await createUser(tx, arriving), is_new: true };
}

/** The first sign-in of an invited user accepts the invitation. */
async function activated(tx: Db, user: UserRow): Promise<UserRow> {
  if (user.status !== 'invited') return user;
  const accepted = { status: 'active' as const, invitation_hash: null, invitation_expires_at: null };
  await tx.update(users).set(accepted).where(eq(users.id, user.id));
  await emitUserEvent({ db: tx, actor: SYSTEM_ACTOR }, 'user_updated', {
    user,
    role_names: [],
    changed_fields: ['status'],
  });
  return { ...user, ...accepted };
}

async function createUser(tx: Db, { person, settings, account_id, now }: Arriving): Promise<UserRow> {
  const plan = await readAccountPlan(tx, account_id, { now });
  await requireRoom(tx, plan, { limit: 'max_users', days: null, now });
  const { email, full_name } = person;
  try {
    const [user] = await tx.insert(users).values({ account_id, email, full_name, status: 'active' }).returning();
    return user!;
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw refused(settings, 403, 'sign_in_email_taken', `Another user has the address ${email}. Sign in again`);
  }
}
