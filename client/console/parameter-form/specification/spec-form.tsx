import { Button, Input, Select } from '@mantine/core';
import type { ReactNode } from 'react';
import { isEmpty, MASK, type ParameterValues } from '../parameter-values.ts';
import { textOf } from '../field-props.ts';
import { ParameterInput } from '../parameter-input.tsx';
import type { ParameterFormState } from '../use-parameter-form.ts';
import {
  chosenOption,
  itemNodes,
  listAt,
  nodesOf,
  type Path,
  type Schema,
  sharedValues,
  type SpecNode,
  type SpecParameter,
  specProblems,
  valueAt,
  withValue,
} from './specification.ts';

interface SpecFormProps {
  /** The specification of the configuration. */
  schema: Schema;
  form: ParameterFormState;
  stored: ParameterValues;
  disabled: boolean;
}

interface Editing {
  form: ParameterFormState;
  config: unknown;
  /** `MASK`: those that are stored. */
  secrets: unknown;
  problems: Record<string, string>;
  disabled: boolean;
  set(tree: 'config' | 'secrets', path: Path, value: unknown): void;
  /** Of both trees. */
  replace(path: Path, config: unknown, secrets?: unknown): void;
}

/** The fields of a connector from a manifest: its specification defines them. Secrets go into a tree of their own. */
export function SpecForm({ schema, form, stored, disabled }: SpecFormProps) {
  const nodes = nodesOf(schema);
  const { config, secrets } = form.values;
  const isStored = stored['secrets'] === MASK && !form.repeated.has('secrets');
  const trees = { config, secrets: secrets === MASK && !isStored ? undefined : secrets };
  const problems = specProblems(nodes, trees);
  const hasProblems = Object.keys(problems).length > 0;
  const editing: Editing = {
    ...trees,
    form,
    problems,
    disabled,
    set(tree, path, value) {
      const before = trees[tree] === MASK ? undefined : trees[tree];
      const after = withValue(before, path, value === '' || value === null ? undefined : value);
      form.set(tree, after ?? (tree === 'secrets' && isStored ? MASK : {}));
    },
    replace(path, one, other) {
      form.set('config', withValue(trees.config, path, one) ?? {});
      if (trees.secrets !== MASK) form.set('secrets', withValue(trees.secrets, path, other) ?? {});
    },
  };
  const isReplaced = stored['secrets'] === MASK && secrets !== MASK && !isEmpty(secrets);
  const notes = [
    form.repeated.has('secrets') || !hasProblems ? form.problems['secrets'] : undefined,
    // What the service refused is not known here, and has no field of its own.
    hasProblems ? undefined : form.problems['config'],
  ].filter((text) => text !== undefined);
  return (
    <>
      <Nodes nodes={nodes} editing={editing} />
      {isReplaced && <p className="dimmed wide">The stored secrets are replaced together: enter all of them.</p>}
      {notes.map((text) => (
        <Input.Error key={text} className="wide" role="alert">
          {text}
        </Input.Error>
      ))}
    </>
  );
}

function Nodes({ nodes, editing }: { nodes: readonly SpecNode[]; editing: Editing }) {
  return nodes.map((node) => {
    const key = node.path.join('.');
    switch (node.kind) {
      case 'group':
        return (
          <Part key={key} {...node.about}>
            <Nodes nodes={node.nodes} editing={editing} />
          </Part>
        );
      case 'choice':
        return <Choice key={key} node={node} editing={editing} />;
      case 'list':
        return <List key={key} node={node} editing={editing} />;
      default:
        return <Field key={key} path={node.path} parameter={node.parameter} editing={editing} />;
    }
  });
}

function Part({ label, description, children }: { label: string; description: string | null; children: ReactNode }) {
  return (
    <fieldset className="bare-fieldset wide">
      <legend className="group-name">{label}</legend>
      {description !== null && <p className="dimmed">{description}</p>}
      <div className="fields">{children}</div>
    </fieldset>
  );
}

function Field({ path, parameter, editing }: { path: Path; parameter: SpecParameter; editing: Editing }) {
  const { form, problems, disabled } = editing;
  const { name, label, description, required, placeholder, secret, default: fallback } = parameter;
  const tree = secret ? 'secrets' : 'config';
  const isStored = secret && editing.secrets === MASK;
  const shown = isEmpty(fallback) ? undefined : textOf(fallback);
  return (
    <ParameterInput
      parameter={parameter}
      value={isStored ? MASK : valueAt(editing[tree], path)}
      options={parameter.possible_values ?? {}}
      isStored={isStored}
      onChange={(value) => editing.set(tree, path, value === MASK ? undefined : value)}
      frame={{
        name,
        label,
        description,
        withAsterisk: required && isEmpty(fallback),
        placeholder: placeholder ?? shown,
        error: form.touched.has(name) || form.touched.has('config') ? (problems[name] ?? null) : null,
        disabled,
        onBlur: () => form.touch(name),
      }}
    />
  );
}

function Choice({ node, editing }: { node: Extract<SpecNode, { kind: 'choice' }>; editing: Editing }) {
  const { path, about, options } = node;
  const name = path.join('.');
  const chosen = chosenOption(node, editing.config);
  const option = options[chosen];
  const { form, config, secrets } = editing;
  const select = (value: string | null) => {
    if (value === null) return editing.replace(path, undefined);
    const { constants } = options[Number(value)]!;
    editing.replace(path, { ...sharedValues(node, config), ...constants }, sharedValues(node, secrets));
  };
  return (
    <fieldset className="bare-fieldset wide">
      <legend className="hidden">{about.label}</legend>
      <div className="fields">
        <Select
          name={name}
          label={about.label}
          description={about.description}
          withAsterisk={about.required}
          clearable={!about.required}
          disabled={editing.disabled}
          error={form.touched.has('config') ? (editing.problems[name] ?? null) : null}
          data={options.map(({ label }, at) => ({ value: String(at), label }))}
          value={option ? String(chosen) : null}
          onChange={select}
        />
        {option?.description && <p className="dimmed wide">{option.description}</p>}
        {option && <Nodes nodes={option.nodes} editing={editing} />}
      </div>
    </fieldset>
  );
}

function List({ node, editing }: { node: Extract<SpecNode, { kind: 'list' }>; editing: Editing }) {
  const { path, about } = node;
  const items = listAt(editing.config, path);
  const without = (list: unknown[], at: number) => list.filter((_, other) => other !== at);
  const problem = editing.form.touched.has('config') ? editing.problems[path.join('.')] : undefined;
  return (
    <Part {...about}>
      {items.map((_, at) => (
        // Entries have no identity but their position.
        <div key={at} className="fields wide">
          <Nodes nodes={itemNodes(node, at)} editing={editing} />
          <Button
            variant="default"
            disabled={editing.disabled}
            onClick={() => {
              const secrets = editing.secrets === MASK ? [] : listAt(editing.secrets, path);
              editing.replace(path, without(items, at), without(secrets, at));
            }}
          >
            Remove entry {at + 1}
          </Button>
        </div>
      ))}
      {problem !== undefined && (
        <Input.Error className="wide" role="alert">
          {problem}
        </Input.Error>
      )}
      <Button variant="default" disabled={editing.disabled} onClick={() => editing.set('config', path, [...items, {}])}>
        Add entry
      </Button>
    </Part>
  );
}
