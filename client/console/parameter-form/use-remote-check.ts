import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { client, trpc, type RouterOutputs } from '../api.ts';
import { isEmpty, MASK, type Parameter, problemOf, type ParameterValues, wireValue } from './parameter-values.ts';
import type { ParameterFormState } from './use-parameter-form.ts';

const DEBOUNCE_MS = 600;

export interface RemoteCheck {
  state: 'none' | 'checking' | 'valid' | 'invalid';
  message: string | null;
  /** What does not refuse the value but should be known. */
  warning: string | null;
}

const UNCHECKED: RemoteCheck = { state: 'none', message: null, warning: null };

/** Checks a value against the connected system, after a pause in typing. Needs an existing account connector. */
export function useRemoteCheck(
  parameter: Parameter,
  {
    account_connector_id,
    form,
    stored,
  }: { account_connector_id: string | undefined; form: ParameterFormState; stored: ParameterValues },
): RemoteCheck {
  const value = form.values[parameter.name];
  const { [parameter.name]: _own, ...parameters } = form.changed();
  // Without the secrets the service tests nothing; the form already asks for them.
  const isUntestable = [...form.repeated].some((name) => form.values[name] === MASK || isEmpty(form.values[name]));
  const given = { value, stored: stored[parameter.name], parameters, isTestable: !isUntestable };
  return useValueCheck(parameter, account_connector_id, given);
}

interface GivenValue {
  value: unknown;
  /** The value that needs no check. */
  stored: unknown;
  /** Other parameters that differ from the stored ones. */
  parameters: Record<string, unknown>;
  isTestable: boolean;
}

/** Checks one value of an existing account connector, which need not become its setting. */
export function useValueCheck(
  parameter: Parameter | undefined,
  account_connector_id: string | undefined,
  { value, stored, parameters: others, isTestable }: GivenValue,
): RemoteCheck {
  const wired = (one: unknown) => JSON.stringify((parameter && wireValue(parameter, one)) ?? null);
  const [parameters] = useDebouncedValue(JSON.stringify(others), DEBOUNCE_MS);
  const [settled] = useDebouncedValue(wired(value), DEBOUNCE_MS);
  const isChanged = settled !== wired(stored);
  const isFit = parameter !== undefined && problemOf(parameter, value) === null;
  const isCheckable = isChanged && isTestable && isFit && !isEmpty(value) && value !== MASK;
  const check = useQuery({
    queryKey: [
      ...trpc.account_connectors.validateParameter.mutationKey(),
      account_connector_id,
      parameter?.name,
      settled,
      parameters,
    ],
    enabled: account_connector_id !== undefined && isCheckable,
    staleTime: 30_000,
    queryFn: ({ signal }): Promise<RouterOutputs['account_connectors']['validateParameter']> =>
      client.account_connectors.validateParameter.mutate(
        {
          account_connector_id: account_connector_id!,
          parameter_name: parameter!.name,
          value: JSON.parse(settled),
          parameters: JSON.parse(parameters),
        },
        { signal },
      ),
  });
  if (account_connector_id === undefined || !isCheckable) return UNCHECKED;
  if (check.isFetching) return { ...UNCHECKED, state: 'checking' };
  if (!check.data) return UNCHECKED;
  const { errors, warnings } = check.data;
  const warning = warnings[0]?.message ?? null;
  return { state: errors[0] ? 'invalid' : 'valid', message: errors[0]?.message ?? null, warning };
}
