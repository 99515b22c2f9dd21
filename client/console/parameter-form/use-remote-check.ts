import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { client, type RouterOutputs, trpc } from '../api.ts';
import { isEmpty, MASK, type Parameter, type ParameterValues, problemOf, wireValue } from './parameter-values.ts';
import type { ParameterFormState } from './use-parameter-form.ts';

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
    form,
    stored,
  }: { account_connector_id: string | undefined; form: ParameterFormState; stored: ParameterValues },
): RemoteCheck {
  const value = form.values[parameter.name];
  const { [parameter.name]: _own, ...others } = form.changed();
  const [parameters] = useDebouncedValue(JSON.stringify(others), DEBOUNCE_MS);
  // Without the secrets the service tests nothing; the form already asks for them.
  const isUntestable = [...form.repeated].some((name) => form.values[name] === MASK || isEmpty(form.values[name]));
  const [settled] = useDebouncedValue(JSON.stringify(wireValue(parameter, value) ?? null), DEBOUNCE_MS);
  const isChanged = settled !== JSON.stringify(wireValue(parameter, stored[parameter.name]) ?? null);
  const isCheckable =
    isChanged && !isUntestable && !isEmpty(value) && value !== MASK && problemOf(parameter, value) === null;
  const check = useQuery({
    queryKey: [
      ...trpc.account_connectors.validateParameter.mutationKey(),
      account_connector_id,
      parameter.name,
      settled,
      parameters,
    ],
    enabled: account_connector_id !== undefined && isCheckable,
    staleTime: 30_000,
    queryFn: ({ signal }): Promise<RouterOutputs['account_connectors']['validateParameter']> =>
      client.account_connectors.validateParameter.mutate(
        {
          account_connector_id: account_connector_id!,
          parameter_name: parameter.name,
          value: JSON.parse(settled),
          parameters: JSON.parse(parameters),
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
