import { Autocomplete, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { textOf } from '../../parameter-form/field-props.ts';
import { findingOf, schemaParameter, useSchemaTest } from './schema-test.ts';

interface DestinationSchemaProps {
  destination_id: string;
  value: string;
  /** The schema in use, which needs no test. */
  stored?: string;
  onChange: (schema: string) => void;
}

/** The schema that a connection writes to, tested while it is typed. Nothing for a destination without schemas. */
export function DestinationSchema({ destination_id, value, stored = '', onChange }: DestinationSchemaProps) {
  const { data: destination } = useQuery(
    trpc.account_connectors.get.queryOptions({ connector_type: 'destination', account_connector_id: destination_id }),
  );
  const entry = useQuery(
    trpc.connectors.get.queryOptions(
      {
        connector_type: 'destination',
        connector_name: destination?.connector_name ?? '',
        connector_id: destination?.connector_id,
      },
      { enabled: destination !== undefined },
    ),
  );
  const parameter = schemaParameter(entry.data);
  const status = destination?.status ?? 'pending_test';
  const known = useQuery(
    trpc.account_connectors.dynamicPossibleValues.queryOptions(
      { account_connector_id: destination_id, parameter_name: parameter?.name ?? '' },
      {
        enabled: parameter?.dynamic_possible_values === true && status === 'active',
        staleTime: 60_000,
        retry: false,
      },
    ),
  );
  const usual = parameter ? textOf(destination?.parameters[parameter.name] ?? parameter.default ?? '') : '';
  const isNew = parameter !== undefined && value.trim() !== stored;
  const { isTesting, tested } = useSchemaTest({ id: destination_id, status }, isNew ? value : '');
  if (!parameter && stored === '') return null;
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
      onChange={onChange}
    />
  );
}
