import type { ApiClient } from '../../api.ts';
import type { AccountConnector } from '../actions/account-connectors.ts';
import type { Connection } from '../actions/connections.ts';

type Role = Awaited<ReturnType<ApiClient['roles']['list']['query']>>[number];
/** Named by the email address. */
type User = Omit<Awaited<ReturnType<ApiClient['users']['list']['query']>>[number], 'roles'> & {
  name: string;
  roles: string[];
};

export type Trigger = Awaited<ReturnType<ApiClient['automation']['listTriggers']['query']>>[number];

/** The account's current items. */
export interface Current {
  sources: AccountConnector[];
  destinations: AccountConnector[];
  connections: Connection[];
  triggers: Trigger[];
  /** Without those of the service, which cannot change. */
  roles: Role[];
  users: User[];
  /** Roles that users may have, those of the service among them. */
  known_roles: Role[];
}

/** Roles and users are read only where a file has them: others need no permission to. */
export async function readCurrent(api: ApiClient, { withPeople }: { withPeople: boolean }): Promise<Current> {
  const [roles, users, connectors, connections, triggers] = await Promise.all([
    withPeople ? api.roles.list.query() : [],
    withPeople ? api.users.list.query() : [],
    api.account_connectors.list.query(),
    api.connections.list.query(),
    api.automation.listTriggers.query({}),
  ]);
  return {
    sources: connectors.filter(({ connector_type }) => connector_type === 'source'),
    destinations: connectors.filter(({ connector_type }) => connector_type === 'destination'),
    connections,
    triggers: triggers.filter(({ is_system }) => !is_system),
    roles: roles.filter(({ is_system }) => !is_system),
    users: users.map(userOf),
    known_roles: roles,
  };
}

export const userOf = (user: Awaited<ReturnType<ApiClient['users']['list']['query']>>[number]): User => ({
  ...user,
  name: user.email,
  roles: user.roles.map(({ name }) => name).toSorted(),
});

/** Items are identified by name, case-insensitively. */
export const findNamed = <K extends keyof Current>(
  current: Current,
  kind: K,
  name: unknown,
): Current[K][number] | undefined =>
  (current[kind] as Current[K][number][]).find((one) => one.name.toLowerCase() === String(name).toLowerCase());
