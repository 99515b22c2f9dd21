import { useDebouncedValue } from '@mantine/hooks';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { client, type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';

type AccountConnector = RouterOutputs['account_connectors']['get'];
type Connector = RouterOutputs['connectors']['get'];
type SchemaTest = RouterOutputs['account_connectors']['testSchema'];

const DEBOUNCE_MS = 600;

/** The parameter for which the schema of a connection stands in. What MySQL calls a database is a schema elsewhere. */
export function schemaParameter(entry: Connector | undefined) {
  const named = (wanted: string) => entry?.parameters.find(({ name }) => name === wanted);
  return named('schema') ?? named('database');
}

/** The test of a destination with the schema of a connection. */
export const schemaTest = (account_connector_id: string, destination_schema: string) =>
  queryOptions({
    queryKey: [...trpc.account_connectors.testSchema.mutationKey(), account_connector_id, destination_schema],
    staleTime: 30_000,
    retry: false,
    queryFn: ({ signal }): Promise<SchemaTest> =>
      client.account_connectors.testSchema.mutate({ account_connector_id, destination_schema }, { signal }),
  });

/** Tests the schema after a pause in typing, where the destination itself works. */
export function useSchemaTest({ id, status }: Pick<AccountConnector, 'id' | 'status'>, typed: string) {
  const mayTest = usePermission('destinations.update');
  const [schema] = useDebouncedValue(typed.trim(), DEBOUNCE_MS);
  const isTestable = mayTest && status === 'active' && schema !== '';
  const test = useQuery({ ...schemaTest(id, schema), enabled: isTestable });
  return { schema, isTesting: isTestable && test.isFetching, tested: isTestable ? (test.data ?? null) : null };
}

/** Why a schema cannot be used, or what should be known of it. */
export function findingOf({ checks }: SchemaTest): string | null {
  const found =
    checks.find(({ status }) => status === 'failed') ?? checks.find(({ status, fix }) => status === 'skipped' && fix);
  return found ? (found.message ?? found.title) : null;
}
