import type { ReactNode } from 'react';
import { isVisible, type Parameter, type Values } from './parameter-values.ts';
import { ParameterField } from './parameter-field.tsx';
import type { ParameterFormState } from './use-parameter-form.ts';

const GROUPS: Record<Parameter['group'], string> = {
  connection: 'Connection',
  authentication: 'Authentication',
  stream: 'Streams',
  advanced: 'Advanced',
};

interface ParameterFormProps {
  form: ParameterFormState;
  /** What is stored now; nothing of a connector that is still to be made. */
  stored?: Values;
  /** With it the other side is asked for possible values, and whether values would do. */
  account_connector_id?: string;
  disabled?: boolean;
}

/** Fields for a connector's parameters, made of the catalogue alone: by group, the advanced ones folded away. */
export function ParameterForm({ form, stored = {}, account_connector_id, disabled = false }: ParameterFormProps) {
  const visible = form.parameters.filter((parameter) => isVisible(parameter, form));
  const groups = Object.keys(GROUPS) as Parameter['group'][];
  return (
    <div className="stack">
      {groups.map((group) => {
        const parameters = visible.filter((parameter) => parameter.group === group);
        if (parameters.length === 0) return null;
        return (
          <Group key={group} title={GROUPS[group]} isFolded={group === 'advanced'} isNamed={group !== 'connection'}>
            <div className="fields">
              {parameters.map((parameter) => (
                <ParameterField key={parameter.name} {...{ parameter, form, stored, account_connector_id, disabled }} />
              ))}
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
