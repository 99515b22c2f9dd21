import type { ReactNode } from 'react';
import { isVisible, type Parameter, type ParameterValues } from './parameter-values.ts';
import { ParameterField } from './parameter-field.tsx';
import { SpecForm } from './specification/spec-form.tsx';
import type { ParameterFormState } from './use-parameter-form.ts';

const GROUPS: Record<Parameter['group'], string> = {
  connection: 'Connection',
  authentication: 'Authentication',
  stream: 'Streams',
  advanced: 'Advanced',
};

interface ParameterFormProps {
  form: ParameterFormState;
  /** The stored parameters; none for a new connector. */
  stored?: ParameterValues;
  /** Of an existing connector, whose system then provides possible values and checks input. */
  account_connector_id?: string;
  disabled?: boolean;
}

/** Fields for a connector's parameters, by group, with the advanced ones collapsed. The catalog alone defines them. */
export function ParameterForm({ form, stored = {}, account_connector_id, disabled = false }: ParameterFormProps) {
  const hasSpec = form.parameters.some(({ json_schema }) => json_schema !== null);
  const visible = form.parameters
    .filter((parameter) => form.repeated.has(parameter.name) || isVisible(parameter, form))
    // The fields of a specification include its secrets.
    .filter(({ name }) => !(hasSpec && name === 'secrets'));
  const groups = Object.keys(GROUPS) as Parameter['group'][];
  return (
    <div className="stack">
      {groups.map((group) => {
        const parameters = visible.filter((parameter) => parameter.group === group);
        if (parameters.length === 0) return null;
        return (
          <Group key={group} title={GROUPS[group]} isFolded={group === 'advanced'} isNamed={group !== 'connection'}>
            <div className="fields">
              {parameters.map((parameter) =>
                parameter.json_schema ? (
                  <SpecForm key={parameter.name} {...{ schema: parameter.json_schema, form, stored, disabled }} />
                ) : (
                  <ParameterField
                    key={parameter.name}
                    {...{ parameter, form, stored, account_connector_id, disabled }}
                  />
                ),
              )}
            </div>
          </Group>
        );
      })}
    </div>
  );
}

function Group(props: { title: string; isFolded: boolean; isNamed: boolean; children: ReactNode }) {
  const { title, isFolded, isNamed, children } = props;
  if (isFolded) {
    return (
      <details className="fold">
        <summary>{title}</summary>
        {children}
      </details>
    );
  }
  return (
    <fieldset className="bare-fieldset">
      <legend className={isNamed ? 'group-name' : 'hidden'}>{title}</legend>
      {children}
    </fieldset>
  );
}
