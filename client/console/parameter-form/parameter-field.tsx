import { Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../api.ts';
import { Icon } from '../components/icon.tsx';
import { textOf } from './field-props.ts';
import { ParameterInput } from './parameter-input.tsx';
import { isEmpty, MASK, type Parameter, type ParameterValues } from './parameter-values.ts';
import type { ParameterFormState } from './use-parameter-form.ts';
import { useRemoteCheck } from './use-remote-check.ts';

interface ParameterFieldProps {
  parameter: Parameter;
  form: ParameterFormState;
  stored: ParameterValues;
  account_connector_id: string | undefined;
  disabled: boolean;
}

/** One parameter: its input, its possible values and its error. */
export function ParameterField({ parameter, form, stored, account_connector_id, disabled }: ParameterFieldProps) {
  const { name, label, description, required, placeholder } = parameter;
  const check = useRemoteCheck(parameter, { account_connector_id, form, stored });
  const dynamic = useQuery(
    trpc.account_connectors.dynamicPossibleValues.queryOptions(
      {
        account_connector_id: account_connector_id ?? '',
        parameter_name: name,
      },
      { enabled: account_connector_id !== undefined && parameter.dynamic_possible_values, staleTime: 60_000 },
    ),
  );
  const marks = {
    none: undefined,
    invalid: undefined,
    checking: <Loader size={14} aria-label="Checking…" />,
    valid: (
      <span className="good" title="Value accepted">
        <Icon name="check" size={16} />
      </span>
    ),
  };
  const error = form.problems[name] ?? check.message;
  const fallback = isEmpty(parameter.default) ? undefined : textOf(parameter.default);
  return (
    <ParameterInput
      parameter={parameter}
      value={form.values[name]}
      options={parameter.possible_values ?? dynamic.data ?? {}}
      isStored={stored[name] === MASK && !form.repeated.has(name)}
      onChange={(value) => form.set(name, value)}
      frame={{
        name,
        label,
        description,
        withAsterisk: required,
        placeholder: placeholder ?? fallback,
        error,
        disabled,
        onBlur: () => form.touch(name),
        ...(marks[check.state] && { rightSection: marks[check.state] }),
      }}
    />
  );
}
