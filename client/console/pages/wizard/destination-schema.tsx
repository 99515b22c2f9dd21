import { Autocomplete, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { textOf } from '../../parameter-form/field-props.ts';
import type { AccountConnector } from '../account-connectors/account-connector.tsx';
import { findingOf, schemaParameter, useSchemaTest } from '../account-connectors/schema-test.ts';
import type { DraftState } from './draft.ts';

interface DestinationSchemaProps {
  destination: AccountConnector;
  draft: DraftState;
}

/** The schema that the connection writes to, tested while it is typed. */
export function DestinationSchema({ destination, draft: { draft, set } }: DestinationSchemaProps) {
  const value = draft.destination_schema;
  const entry = useQuery(
    trpc.connectors.get.queryOptions({
      connector_type: 'destination',
      connector_name: destination.connector_name,
      connector_id: destination.connector_id,
    }),
  );
  const parameter = schemaParameter(entry.data);
  const known = useQuery(
    trpc.account_connectors.dynamicPossibleValues.queryOptions(
      { account_connector_id: destination.id, parameter_name: parameter?.name ?? '' },
      {
        enabled: parameter?.dynamic_possible_values === true && destination.status === 'active',
        staleTime: 60_000,
        retry: false,
      },
    ),
  );
  const usual = parameter ? textOf(destination.parameters[parameter.name] ?? parameter.default ?? '') : '';
  const { isTesting, tested } = useSchemaTest(destination, parameter ? value : '');
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
      error={tested && findingOf(tested)}
      rightSection={isTesting && <Loader size={14} aria-label="Checking…" />}
      onChange={(destination_schema) => set({ destination_schema })}
    />
  );
}
