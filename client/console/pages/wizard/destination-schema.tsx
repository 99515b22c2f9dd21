import { Autocomplete, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { textOf } from '../../parameter-form/field-props.ts';
import { useValueCheck } from '../../parameter-form/use-remote-check.ts';
import { usePermission } from '../../current-user.ts';
import type { AccountConnector } from '../account-connectors/account-connector.tsx';
import type { DraftState } from './draft.ts';

interface DestinationSchemaProps {
  destination: AccountConnector;
  draft: DraftState;
}

/**
 * The schema that the connection writes to. It is asked for beside the test of the destination, which is about the
 * default schema: the rights in this one are checked while it is typed.
 */
export function DestinationSchema({ destination, draft: { draft, set } }: DestinationSchemaProps) {
  const value = draft.destination_schema;
  const mayCheck = usePermission('destinations.update');
  const entry = useQuery(
    trpc.connectors.get.queryOptions({
      connector_type: 'destination',
      connector_name: destination.connector_name,
      connector_id: destination.connector_id,
    }),
  );
  const parameter = entry.data?.parameters.find(({ name }) => name === 'schema');
  const known = useQuery(
    trpc.account_connectors.dynamicPossibleValues.queryOptions(
      { account_connector_id: destination.id, parameter_name: 'schema' },
      {
        enabled: parameter?.dynamic_possible_values === true && destination.status === 'active',
        staleTime: 60_000,
        retry: false,
      },
    ),
  );
  const usual = textOf(destination.parameters['schema'] ?? parameter?.default ?? '');
  const given = { value: value.trim(), stored: usual, parameters: {}, isTestable: mayCheck };
  const check = useValueCheck(parameter, destination.id, given);
  return (
    <Autocomplete
      label="Destination schema"
      description={
        usual === '' ? 'Where this connection creates its tables' : `Leave empty to create the tables in ${usual}`
      }
      placeholder={usual === '' ? 'Destination default' : usual}
      data={Object.keys(known.data ?? {})}
      limit={100}
      value={value}
      error={check.message ?? check.warning}
      rightSection={check.state === 'checking' && <Loader size={14} aria-label="Checking…" />}
      onChange={(destination_schema) => set({ destination_schema })}
    />
  );
}
