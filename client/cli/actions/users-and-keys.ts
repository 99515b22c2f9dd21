import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { pick, pickWhole } from '../find.ts';
import { readLogin, storeLogin } from '../settings.ts';
import { colouredStatus, moment } from '../style.ts';
import { showList, showThing } from '../table.ts';
import { requireConfirmation } from './session.ts';

export async function listUsers(cli: Cli, flags: { json: boolean }): Promise<void> {
  showList(cli, await (await cli.api()).users.list.query(), {
    json: flags.json,
    empty: 'No users',
    columns: {
      email: ({ email, is_me }) => (is_me ? `${email} (you)` : email),
      name: ({ full_name }) => full_name,
      status: ({ status }) => colouredStatus(cli.style, status),
      roles: ({ roles }) => roles.map(({ name }) => name).join(', '),
    },
    wide: { 'last request': ({ last_api_request_at }) => moment(last_api_request_at), id: ({ id }) => id },
  });
}

export async function inviteUser(
  cli: Cli,
  flags: { json: boolean; name?: string; role?: readonly string[] },
  email: string,
): Promise<void> {
  const api = await cli.api();
  const roles = flags.role ? await api.roles.list.query() : [];
  const created = await api.users.create.mutate({
    email,
    full_name: flags.name ?? email.split('@')[0]!,
    ...(flags.role && { role_ids: flags.role.map((wanted) => pick(roles, wanted, 'role').id) }),
  });
  showThing(cli, created, {
    json: flags.json,
    lines: {
      user: `${created.full_name} (${created.email})`,
      roles: created.roles.map(({ name }) => name).join(', '),
      // Only a path if PUBLIC_URL is not set.
      'invitation link, shown once': created.invite_link ? new URL(created.invite_link, cli.login().url).href : '–',
    },
  });
}

export async function disableUser(cli: Cli, flags: { json: boolean; yes: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const users = (await api.users.list.query()).map((user) => ({ ...user, name: user.email }));
  const { id, email } = pickWhole(users, wanted, 'user');
  await requireConfirmation(cli, { yes: flags.yes, message: `Disable ${email}?` });
  const changed = await api.users.update.mutate({ user_id: id, is_active: false });
  if (flags.json) cli.document = changed;
  else cli.print(`Disabled: ${email}`);
}

interface KeyOwner {
  /** Name or id. Default: the caller. */
  serviceAccount?: string;
}

const ownerOf = async (api: ApiClient, { serviceAccount }: KeyOwner): Promise<string | undefined> =>
  serviceAccount === undefined
    ? undefined
    : pick(await api.users.listServiceAccounts.query(), serviceAccount, 'service account').id;

const keysOf = async (api: ApiClient, owner: KeyOwner) =>
  api.users.listKeys.query({ user_id: await ownerOf(api, owner) });

export async function listKeys(cli: Cli, flags: KeyOwner & { json: boolean }): Promise<void> {
  showList(cli, await keysOf(await cli.api(), flags), {
    json: flags.json,
    empty: 'No API keys',
    columns: {
      key: ({ prefix, is_current }) => (is_current ? `${prefix}… (in use)` : `${prefix}…`),
      name: ({ name }) => name ?? '',
      scopes: ({ scopes }) => scopes?.join(', ') ?? 'all',
      status: ({ status }) => colouredStatus(cli.style, status),
      expires: ({ expires_at, revoked_at }) => moment(revoked_at ?? expires_at),
      'last used': ({ last_used_at }) => moment(last_used_at),
    },
    wide: { created: ({ created_at }) => moment(created_at), id: ({ id }) => id },
  });
}

export interface KeyCreation extends KeyOwner {
  json: boolean;
  scope?: readonly string[];
  days?: number;
}

export async function createKey(cli: Cli, flags: KeyCreation, name: string): Promise<void> {
  const api = await cli.api();
  const created = await api.users.createKey.mutate({
    name,
    scopes: (flags.scope ?? null) as Parameters<typeof api.users.createKey.mutate>[0]['scopes'],
    expires_in_days: flags.days,
    user_id: await ownerOf(api, flags),
  });
  showThing(cli, created, {
    json: flags.json,
    lines: { 'key, shown once': created.api_key, 'valid until': moment(created.expires_at) },
  });
}

export async function listServiceAccounts(cli: Cli, flags: { json: boolean }): Promise<void> {
  showList(cli, await (await cli.api()).users.listServiceAccounts.query(), {
    json: flags.json,
    empty: 'No service accounts',
    columns: {
      name: ({ name }) => name,
      status: ({ is_active }) => colouredStatus(cli.style, is_active ? 'active' : 'disabled'),
      roles: ({ roles }) => roles.map((role) => role.name).join(', '),
      keys: ({ live_keys }) => String(live_keys),
      'last used': ({ last_used_at }) => moment(last_used_at),
    },
    wide: { created: ({ created_at }) => moment(created_at), id: ({ id }) => id },
  });
}

export async function createServiceAccount(
  cli: Cli,
  flags: { json: boolean; role?: readonly string[] },
  name: string,
): Promise<void> {
  const api = await cli.api();
  const roles = flags.role ? await api.roles.list.query() : [];
  const role_ids = (flags.role ?? []).map((wanted) => pick(roles, wanted, 'role').id);
  const created = await api.users.createServiceAccount.mutate({ name, role_ids });
  showThing(cli, created, {
    json: flags.json,
    lines: { name: created.name, roles: created.roles.map((role) => role.name).join(', '), id: created.id },
  });
}

export async function deleteServiceAccount(cli: Cli, flags: { yes: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, name } = pickWhole(await api.users.listServiceAccounts.query(), wanted, 'service account');
  await requireConfirmation(cli, { yes: flags.yes, message: `Delete ${name} and revoke its keys?` });
  await api.users.delete.mutate({ user_id: id });
  cli.print(`Deleted: ${name}`);
}

/** Replaces the stored key before printing anything: the service shows the new key only once. */
export async function rotateKey(cli: Cli, flags: { json: boolean; graceHours?: number }): Promise<void> {
  const { url, key } = cli.login();
  const rotated = await (await cli.api()).users.rotateKey.mutate({ grace_hours: flags.graceHours });
  const isStored = readLogin()?.key === key;
  const path = isStored ? storeLogin({ url, key: rotated.api_key }) : null;
  showThing(cli, rotated, {
    json: flags.json,
    lines: {
      'new key, shown once': rotated.api_key,
      'valid until': moment(rotated.expires_at),
      'previous key': `${rotated.previous.prefix}…, valid until ${moment(rotated.previous.expires_at)}`,
      stored: path ?? 'not stored: update DATA_PIPELINES_KEY',
    },
  });
}

export async function revokeKey(cli: Cli, flags: KeyOwner & { yes: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const named = (await keysOf(api, flags)).map((key) => ({ ...key, name: key.prefix }));
  const { id, prefix, is_current } = pickWhole(named, wanted.replace(/…$/, ''), 'key');
  const message = is_current ? `Revoke ${prefix}…, the key that this command uses?` : `Revoke the key ${prefix}…?`;
  await requireConfirmation(cli, { yes: flags.yes, message });
  await api.users.revokeKey.mutate({ key_id: id });
  cli.print(`Revoked: ${prefix}…`);
}
