import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { client, trpc, type RouterOutputs } from '../api.ts';
import { isEmpty, MASK, type Parameter, problemOf, type ParameterValues, wireValue } from './parameter-values.ts';

const DEBOUNCE_MS = 600;

export interface RemoteCheck {
  state: 'none' | 'checking' | 'valid' | 'invalid';
  message: string | null;
}

/**
 * Checks a value against the connected system, after a pause in typing. Needs an existing account connector.
 */
export function useRemoteCheck(
  parameter: Parameter,
  {
    account_connector_id,
    values,
    stored,
  }: { account_connector_id: string | undefined; values: ParameterValues; stored: ParameterValues },
): RemoteCheck {
  const value = values[parameter.name];
  const [settled] = useDebouncedValue(JSON.stringify(wireValue(parameter, value) ?? null), DEBOUNCE_MS);
  const isChanged = settled !== JSON.stringify(wireValue(parameter, stored[parameter.name]) ?? null);
  const isCheckable = isChanged && !isEmpty(value) && value !== MASK && problemOf(parameter, value) === null;
  const check = useQuery({
    queryKey: [
      ...trpc.account_connectors.validateParameter.mutationKey(),
      account_connector_id,
      parameter.name,
      settled,
    ],
    enabled: account_connector_id !== undefined && isCheckable,
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
  if (account_connector_id === undefined || !isCheckable) return { state: 'none', message: null };
  if (check.isFetching) return { state: 'checking', message: null };
  if (!check.data) return { state: 'none', message: null };
  const [error] = check.data.errors;
  return error ? { state: 'invalid', message: error.message } : { state: 'valid', message: null };
}
