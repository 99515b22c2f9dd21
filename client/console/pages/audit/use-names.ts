import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';

type Entry = RouterOutputs['audit']['list'][number];

const CACHED = { staleTime: 60_000 };
const NONE: never[] = [];

/** Names by the ids that entries contain: as they are now, or of what is gone as the entries have them. */
export function useNames(entries: Entry[]): ReadonlyMap<string, string> {
  const { data: users = NONE } = useQuery(trpc.users.list.queryOptions(undefined, CACHED));
  const { data: roles = NONE } = useQuery(trpc.roles.list.queryOptions(undefined, CACHED));
  const { data: account_connectors = NONE } = useQuery(trpc.account_connectors.list.queryOptions({}, CACHED));
  const { data: connections = NONE } = useQuery(trpc.connections.summaries.queryOptions({}, CACHED));
  const { data: triggers = NONE } = useQuery(
    trpc.automation.listTriggers.queryOptions({ include_system: true }, CACHED),
  );
  return useMemo(
    () =>
      new Map([
        ...entries.flatMap(({ resource }): [string, string][] =>
          resource?.name && !IDS_AS_NAMES.has(resource.type) ? [[resource.id, resource.name]] : [],
        ),
        ...[roles, account_connectors, connections, triggers].flatMap((list) =>
          list.map(({ id, name }): [string, string] => [id, name]),
        ),
        ...users.map(({ id, full_name }): [string, string] => [id, full_name]),
      ]),
    [entries, users, roles, account_connectors, connections, triggers],
  );
}

/** Resources that are named by the id of another one. */
const IDS_AS_NAMES: ReadonlySet<string> = new Set(['user_role', 'notification_settings']);
