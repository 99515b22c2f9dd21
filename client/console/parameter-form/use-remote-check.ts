import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { client, trpc, type RouterOutputs } from '../api.ts';
import { isEmpty, MASK, type Parameter, problemOf, type Values, wireValue } from './parameter-values.ts';

const PAUSE_MS = 600;

export interface RemoteCheck {
  state: 'none' | 'checking' | 'valid' | 'invalid';
  message: string | null;
}

/**
 * Asks the service, and through it the other side, whether a value would do: after a pause in typing, and only where
 * there is an account connector to ask for.
 */
export function useRemoteCheck(
  parameter: Parameter,
  {
    account_connector_id,
    values,
    stored,
  }: { account_connector_id: string | undefined; values: Values; stored: Values },
): RemoteCheck {
  const value = values[parameter.name];
  const [settled] = useDebouncedValue(JSON.stringify(wireValue(parameter, value) ?? null), PAUSE_MS);
  const isChanged = settled !== JSON.stringify(wireValue(parameter, stored[parameter.name]) ?? null);
  const isWorthAsking = isChanged && !isEmpty(value) && value !== MASK && problemOf(parameter, value) === null;
  const asked = useQuery({
    queryKey: [
      ...trpc.account_connectors.validateParameter.mutationKey(),
      account_connector_id,
      parameter.name,
      settled,
    ],
    enabled: account_connector_id !== undefined && isWorthAsking,
    staleTime: 30_000,
    queryFn: ({ signal }): Promise<RouterOutputs['account_connectors']['validateParameter']> =>
      client.account_connectors.validateParameter.mutate(
        {
          account_connector_id: account_connector_id!,
          parameter_name: parameter.name,
          value: JSON.parse(settled),
        },
        { signal },
      ),
  });
  if (account_connector_id === undefined || !isWorthAsking) return { state: 'none', message: null };
  if (asked.isFetching) return { state: 'checking', message: null };
  if (!asked.data) return { state: 'none', message: null };
  const [error] = asked.data.errors;
  return error ? { state: 'invalid', message: error.message } : { state: 'valid', message: null };
}
