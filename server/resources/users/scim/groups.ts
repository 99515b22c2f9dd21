import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { accounts, type UserRow, users } from '../../../../db/schema/index.ts';
import type { Ctx } from '../../../api/procedure.ts';
import { badRequest, notFound } from '../../../platform/errors.ts';
import type { ProviderSettings } from '../../../platform/provider-settings.ts';
import { keepingAnAdministrator } from '../../access/last-administrator.ts';
import { lockUser } from '../../access/user.ts';
import { rolesNamed } from '../sign-in/update-roles.ts';
import { updateUser } from '../update.ts';
import {
  equalityIn,
  invalidValue,
  Members,
  type Operation,
  pageOf,
  parsed,
  SCHEMAS,
  type ScimGroup,
} from './messages.ts';

type Mapping = Pick<ProviderSettings, 'roles' | 'default_roles'>;
const NO_MAPPING: Mapping = { roles: {}, default_roles: [] };

/** Groups and their roles as the sign-in to the account has them: of the first provider with `groups_claim`. */
async function mappingOf({ deps, db, principal }: Ctx): Promise<Mapping> {
  const [first] = await db.select({ id: accounts.id }).from(accounts).orderBy(asc(accounts.created_at)).limit(1);
  const isOfAccount = ({ account, account_claim, accounts: named }: ProviderSettings) =>
    account_claim === null
      ? (account ?? first?.id) === principal.account_id
      : Object.values(named).includes(principal.account_id);
  return deps.config.OIDC_PROVIDERS.find((one) => one.groups_claim !== null && isOfAccount(one)) ?? NO_MAPPING;
}

/** Ids of the roles of a user in these groups. */
export async function roleIdsOf(ctx: Ctx, groups: readonly string[]): Promise<string[]> {
  const { roles, default_roles } = await mappingOf(ctx);
  const mapped = groups.flatMap((group) => (Object.hasOwn(roles, group) ? roles[group]! : []));
  const names = [...new Set([...default_roles, ...mapped])];
  return (await rolesNamed(ctx.db, { names, account_id: ctx.principal.account_id })).map(({ id }) => id);
}

/** Groups have no rows of their own. */
export const groupIdOf = (name: string) => Buffer.from(name).toString('base64url');

export async function listGroups(ctx: Ctx, query: URLSearchParams) {
  const equal = equalityIn(query.get('filter'), ['displayName', 'id']);
  const names = Object.keys((await mappingOf(ctx)).roles).toSorted();
  const found = names.filter((name) => equal === null || equal[1] === (equal[0] === 'id' ? groupIdOf(name) : name));
  const page = pageOf(found, query);
  const isShort = /(^|,)\s*members\s*(,|$)/i.test(query.get('excludedAttributes') ?? '');
  const groups = page.Resources.map((name) => groupOf(ctx, name, isShort));
  return { ...page, Resources: await Promise.all(groups) };
}

async function groupOf(ctx: Ctx, name: string, isShort = false) {
  const id = groupIdOf(name);
  const location = `${ctx.deps.config.PUBLIC_URL}/scim/v2/Groups/${id}`;
  const group = { schemas: [SCHEMAS.group], id, displayName: name, meta: { resourceType: 'Group', location } };
  if (isShort) return group;
  const members = await membersOf(ctx, name);
  return { ...group, members: members.map((user) => ({ value: user.id, display: user.full_name })) };
}

const membersOf = ({ db, principal }: Ctx, name: string): Promise<UserRow[]> =>
  db
    .select()
    .from(users)
    .where(
      and(
        eq(users.account_id, principal.account_id),
        eq(users.kind, 'person'),
        isNull(users.deleted_at),
        sql`${name} = any(${users.provider_groups})`,
      ),
    )
    .orderBy(asc(users.id));

async function nameOf(ctx: Ctx, id: string): Promise<string> {
  const name = Object.keys((await mappingOf(ctx)).roles).find((one) => groupIdOf(one) === id);
  if (name === undefined) throw notFound('Group');
  return name;
}

export const getGroup = async (ctx: Ctx, id: string) => groupOf(ctx, await nameOf(ctx, id));

/** Groups are those of the settings: a provider that creates one gets it, with the members that it names. */
export async function createGroup(ctx: Ctx, { displayName, members }: ScimGroup) {
  const { roles } = await mappingOf(ctx);
  if (!Object.hasOwn(roles, displayName)) {
    throw invalidValue(
      `The group ${displayName} has no roles here. An operator adds it to roles of the provider in OIDC_PROVIDERS`,
    );
  }
  if (members) await setMembers(ctx, displayName, idsOf(members));
  return groupOf(ctx, displayName);
}

export async function replaceGroup(ctx: Ctx, id: string, { displayName, members }: ScimGroup) {
  const name = await nameOf(ctx, id);
  refuseRename(name, displayName);
  await setMembers(ctx, name, idsOf(members ?? []));
  return groupOf(ctx, name);
}

/** The group stays, as long as the settings name it, without members. */
export const clearGroup = async (ctx: Ctx, id: string) => setMembers(ctx, await nameOf(ctx, id), new Set());

const ONE_MEMBER = /^members\[\s*value\s+eq\s+"([\w-]+)"\s*\]$/i;

export async function patchGroup(ctx: Ctx, id: string, operations: readonly Operation[]) {
  const name = await nameOf(ctx, id);
  const members = new Set((await membersOf(ctx, name)).map((user) => user.id));
  for (const { op, path, value } of operations) {
    const [, one] = ONE_MEMBER.exec(path ?? '') ?? [];
    const target = path?.toLowerCase();
    if (one) changeSet(members, op, new Set([one]));
    else if (target === 'members') changeSet(members, op, value == null ? null : idsOf(parsed(Members, value)));
    else if (target === 'displayname') refuseRename(name, value);
    else if (target == null && typeof value === 'object' && value !== null) {
      const given = value as { members?: unknown; displayName?: unknown };
      if (given.displayName !== undefined) refuseRename(name, given.displayName);
      if (given.members !== undefined) changeSet(members, op, idsOf(parsed(Members, given.members)));
    }
  }
  await setMembers(ctx, name, members);
  return groupOf(ctx, name);
}

/** Without values, `remove` empties the set. */
function changeSet(members: Set<string>, op: Operation['op'], values: ReadonlySet<string> | null): void {
  if (op === 'replace' || values === null) members.clear();
  for (const id of values ?? []) {
    if (op === 'remove') members.delete(id);
    else members.add(id);
  }
}

const idsOf = (members: readonly { value: string }[]) => new Set(members.map(({ value }) => value.toLowerCase()));

function refuseRename(name: string, given: unknown): void {
  if (given !== name) throw badRequest('immutable_field', 'displayName cannot be changed', { field: 'displayName' });
}

/** Sets the members of a group, and the roles of those who join or leave. */
async function setMembers(ctx: Ctx, name: string, wanted: ReadonlySet<string>): Promise<void> {
  // The lock of the account comes first, and lets one change of groups happen at a time.
  await keepingAnAdministrator(ctx, async () => {
    const before = new Set((await membersOf(ctx, name)).map((user) => user.id));
    for (const id of [...wanted.union(before)].toSorted()) {
      if (wanted.has(id) === before.has(id)) continue;
      const user = await lockUser(ctx, id);
      if (user.kind !== 'person') throw invalidValue(`${id} is a service account`);
      const groups = user.provider_groups.filter((one) => one !== name);
      if (wanted.has(id)) groups.push(name);
      await ctx.db.update(users).set({ provider_groups: groups.toSorted() }).where(eq(users.id, id));
      await updateUser(ctx, { user_id: id, role_ids: await roleIdsOf(ctx, groups) });
    }
  });
}
