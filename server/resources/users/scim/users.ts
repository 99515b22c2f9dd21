import { eq, inArray } from 'drizzle-orm';
import { z } from 'zod';
import { sessions, userIdentities, type UserRow } from '../../../../db/schema/index.ts';
import type { Ctx } from '../../../api/procedure.ts';
import { UsageRange } from '../../../api/usage-range.ts';
import { badRequest, notFound } from '../../../platform/errors.ts';
import { createUser } from '../create.ts';
import { selectUser, selectUsers } from '../query.ts';
import { CreateUserRequest, UpdateUserRequest } from '../schema.ts';
import { updateUser } from '../update.ts';
import { groupIdOf, roleIdsOf } from './groups.ts';
import { equalityIn, Flag, Name, type Operation, pageOf, parsed, SCHEMAS, type ScimUser } from './messages.ts';

const presentUser = ({ deps }: Ctx, user: UserRow) => ({
  schemas: [SCHEMAS.user],
  id: user.id,
  userName: user.email,
  displayName: user.full_name,
  name: { formatted: user.full_name },
  emails: [{ value: user.email, type: 'work', primary: true }],
  active: user.status !== 'disabled',
  groups: user.provider_groups.map((name) => ({ value: groupIdOf(name), display: name })),
  meta: {
    resourceType: 'User',
    created: user.created_at,
    lastModified: user.updated_at,
    location: `${deps.config.PUBLIC_URL}/scim/v2/Users/${user.id}`,
  },
});

async function personBy(ctx: Ctx, id: string): Promise<UserRow> {
  const { user } = await selectUser(ctx, { id, account_id: ctx.principal.account_id });
  if (user.kind !== 'person') throw notFound('User');
  return user;
}

export const getScimUser = async (ctx: Ctx, id: string) => presentUser(ctx, await personBy(ctx, id));

export async function listScimUsers(ctx: Ctx, query: URLSearchParams) {
  const equal = equalityIn(query.get('filter'), ['userName', 'emails.value', 'id']);
  const people = (await selectUsers(ctx.db, ctx.principal.account_id)).map(({ user }) => user);
  const wanted = equal?.[1].toLowerCase();
  const found = people.filter((user) => equal === null || wanted === (equal[0] === 'id' ? user.id : user.email));
  // Oldest first: people who are added meanwhile come at the end.
  const page = pageOf(found.toReversed(), query);
  return { ...page, Resources: page.Resources.map((user) => presentUser(ctx, user)) };
}

/** Without an invitation: people sign in with the provider. */
export async function createScimUser(ctx: Ctx, given: ScimUser) {
  const full_name = nameIn(given) ?? given.userName;
  const request = parsed(CreateUserRequest, { email: given.userName, full_name, send_invitation: false });
  const { id } = await createUser(ctx, {
    ...request,
    role_ids: await roleIdsOf(ctx, []),
    usage: UsageRange.parse({}),
  });
  if (given.active === false) await changeUser(ctx, id, { is_active: false });
  return getScimUser(ctx, id);
}

export async function replaceScimUser(ctx: Ctx, id: string, given: ScimUser) {
  const user = await personBy(ctx, id);
  refuseRename(user, given.userName);
  const is_active = given.active ?? user.status !== 'disabled';
  await changeUser(ctx, user.id, { full_name: nameIn(given) ?? user.full_name, is_active });
  return getScimUser(ctx, user.id);
}

interface Change {
  full_name?: string;
  is_active?: boolean;
}

/** Attributes that are not kept here, such as titles, are ignored. */
export async function patchScimUser(ctx: Ctx, id: string, operations: readonly Operation[]) {
  const user = await personBy(ctx, id);
  const change: Change = {};
  const name: Name = {};
  for (const { op, path, value } of operations) {
    if (op === 'remove') continue;
    const pairs = path ? [[path, value] as const] : Object.entries(value ?? {});
    for (const [target, given] of pairs) {
      const attribute = target.replace(`${SCHEMAS.user}:`, '').toLowerCase();
      if (attribute === 'active') change.is_active = parsed(Flag, given);
      else if (attribute === 'username') refuseRename(user, given);
      else if (attribute === 'displayname' || attribute === 'name.formatted') name.formatted = textOf(given);
      else if (attribute === 'name.givenname') name.givenName = textOf(given);
      else if (attribute === 'name.familyname') name.familyName = textOf(given);
      else if (attribute === 'name') Object.assign(name, parsed(Name, given));
    }
  }
  const [first = '', ...others] = user.full_name.split(' ');
  const changed = nameIn({ name: partial(name, { givenName: first, familyName: others.join(' ') }) });
  if (changed !== null) change.full_name = changed;
  await changeUser(ctx, user.id, change);
  return getScimUser(ctx, user.id);
}

const textOf = (given: unknown) => parsed(z.string(), given);

/** One part of a name that is changed alone is completed by the other one. */
const partial = (name: Name, present: Name): Name =>
  name.givenName === undefined && name.familyName === undefined ? name : { ...present, ...name };

function nameIn({ displayName, name }: Pick<ScimUser, 'displayName' | 'name'>): string | null {
  const parts = [name?.givenName, name?.familyName].filter(Boolean).join(' ');
  return [name?.formatted, displayName, parts].find(Boolean) ?? null;
}

function refuseRename(user: UserRow, given: unknown): void {
  if (String(given).toLowerCase() === user.email.toLowerCase()) return;
  throw badRequest('immutable_field', 'userName cannot be changed. Create another user', { field: 'userName' });
}

/** A disabled user is refused at once, with keys and sessions. The sessions are ended, so that they do not come back. */
async function changeUser(ctx: Ctx, user_id: string, change: Change): Promise<void> {
  if (Object.keys(change).length === 0) return;
  await updateUser(ctx, { ...parsed(UpdateUserRequest, change), user_id });
  if (change.is_active !== false) return;
  const identities = ctx.db
    .select({ id: userIdentities.id })
    .from(userIdentities)
    .where(eq(userIdentities.user_id, user_id));
  await ctx.db.delete(sessions).where(inArray(sessions.identity_id, identities));
}
