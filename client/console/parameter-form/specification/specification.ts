import { isEmpty, MASK, type Parameter, problemOf } from '../parameter-values.ts';

/** A setting that a specification declares. */
export type SpecParameter = Parameter & { multiline?: boolean };
export type Path = readonly (string | number)[];
export type Tree = Readonly<Record<string, unknown>>;

/** A part of a form. Paths lead into the configuration, and those of secrets into the tree of secrets. */
export type SpecNode =
  | { kind: 'field'; path: Path; parameter: SpecParameter }
  | { kind: 'group'; path: Path; about: About; nodes: SpecNode[] }
  | { kind: 'choice'; path: Path; about: About; options: SpecOption[]; shared: string[] }
  | { kind: 'list'; path: Path; about: About; item: Schema };

interface About {
  label: string;
  description: string | null;
  required: boolean;
}

/** One of several forms of an object. */
export interface SpecOption {
  label: string;
  description: string | null;
  /** What tells it apart from the others. */
  constants: Tree;
  /** Names of all its settings. */
  names: string[];
  nodes: SpecNode[];
}

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  pattern?: string;
  pattern_descriptor?: string;
  minimum?: number;
  maximum?: number;
  format?: string;
  order?: number;
  multiline?: boolean;
  airbyte_secret?: boolean;
  airbyte_hidden?: boolean;
}

const MAX_DEPTH = 10;

/** The parts of a specification, in its order. */
export function nodesOf(schema: Schema, path: Path = []): SpecNode[] {
  const { properties = {}, required = [] } = schema;
  const own = Object.entries(properties)
    .filter(([, part]) => part.airbyte_hidden !== true && constantOf(part) === undefined)
    .toSorted(([, one], [, other]) => (one.order ?? 0) - (other.order ?? 0))
    .map(([name, part]) => nodeOf(part, [...path, name], required.includes(name)));
  const forms = formsOf(schema);
  if (path.length > 0 || forms.length === 0) return own;
  return [...own, choiceOf(schema, { path, forms, required: true })];
}

const formsOf = ({ oneOf, anyOf }: Schema): Schema[] =>
  (oneOf ?? anyOf ?? []).filter(({ properties }) => properties !== undefined);

function nodeOf(schema: Schema, path: Path, required: boolean): SpecNode {
  const about = aboutOf(schema, path, required);
  const forms = formsOf(schema);
  if (path.length < MAX_DEPTH) {
    if (forms.length > 0) return choiceOf(schema, { path, forms, required });
    if (schema.properties) return { kind: 'group', path, about, nodes: nodesOf(schema, path) };
    if (schema.items?.properties || formsOf(schema.items ?? {}).length > 0) {
      return { kind: 'list', path, about, item: schema.items! };
    }
  }
  return { kind: 'field', path, parameter: parameterOf(schema, path, required) };
}

function choiceOf(
  schema: Schema,
  { path, forms, required }: { path: Path; forms: Schema[]; required: boolean },
): SpecNode {
  const { properties: shared = {} } = schema;
  const options = forms.map((form, at): SpecOption => {
    const whole = { ...form, properties: { ...(path.length > 0 && shared), ...form.properties } };
    const constants = Object.entries(whole.properties).flatMap(([name, part]) => {
      const value = constantOf(part);
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      label: form.title ?? `Option ${at + 1}`,
      description: plain(form.description),
      constants: Object.fromEntries(constants),
      names: Object.keys(whole.properties),
      nodes: nodesOf({ ...whole, oneOf: [] }, path),
    };
  });
  return { kind: 'choice', path, about: aboutOf(schema, path, required), options, shared: Object.keys(shared) };
}

const constantOf = ({ const: only, enum: values }: Schema): unknown =>
  only ?? (values?.length === 1 ? values[0] : undefined);

const aboutOf = ({ title, description }: Schema, path: Path, required: boolean): About => ({
  label: title ?? String(path.at(-1) ?? 'Settings'),
  description: plain(description),
  required,
});

/** Descriptions of specifications have links and other tags. */
const plain = (text: string | undefined): string | null => text?.replaceAll(/<[^<>]*>/g, '').trim() || null;

function parameterOf(schema: Schema, path: Path, required: boolean): SpecParameter {
  const { enum: values = schema.items?.enum, examples, pattern_descriptor, format } = schema;
  const texts = (values ?? []).filter((value) => value !== null).map(String);
  const [example] = Array.isArray(examples) ? examples : [];
  const placeholder = pattern_descriptor ?? (format === 'date-time' ? '2026-01-31T00:00:00Z' : example);
  return {
    name: path.join('.'),
    label: schema.title ?? String(path.at(-1)),
    description: plain(schema.description),
    type: typeOf(schema),
    required,
    secret: schema.airbyte_secret === true,
    directs_secrets: false,
    keyed_address: false,
    default: schema.default ?? null,
    placeholder: isEmpty(placeholder) ? null : String(placeholder),
    pattern: schema.pattern ?? null,
    minimum: schema.minimum ?? null,
    maximum: schema.maximum ?? null,
    possible_values: texts.length > 0 ? Object.fromEntries(texts.map((value) => [value, value])) : null,
    dynamic_possible_values: false,
    depends_on: null,
    visible_when: null,
    group: 'connection',
    order: 0,
    validates_remotely: false,
    json_schema: null,
    ...(schema.multiline === true && { multiline: true }),
  };
}

function typeOf({ type, enum: values, items, format }: Schema): Parameter['type'] {
  const [name] = [type ?? 'string'].flat().filter((one) => one !== 'null');
  switch (name) {
    case 'boolean':
    case 'integer':
    case 'number':
      return name;
    case 'array':
      return items?.enum ? 'multi_enum' : 'string_list';
    case 'object':
      return 'object';
    default:
      if (values) return 'enum';
      return format === 'date' ? 'date' : 'string';
  }
}

export const valueAt = (tree: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, part) => (value as Record<string | number, unknown> | null | undefined)?.[part], tree);

/** The tree with another value at the path. Undefined removes it, and what is empty around it. */
export function withValue(tree: unknown, [first, ...rest]: Path, value: unknown): unknown {
  if (first === undefined) return value;
  const inner = withValue(valueAt(tree, [first]), rest, value);
  if (typeof first === 'number') {
    const list = Array.isArray(tree) ? [...(tree as unknown[])] : [];
    list[first] = inner ?? {};
    return list;
  }
  const { [first]: _before, ...others } = (tree ?? {}) as Record<string, unknown>;
  const all = inner === undefined ? others : { ...others, [first]: inner };
  return value === undefined && Object.keys(all).length === 0 ? undefined : all;
}

type ChoiceNode = Extract<SpecNode, { kind: 'choice' }>;

/** The option that a configuration has; -1: none yet. */
export function chosenOption({ options, path, shared }: ChoiceNode, config: unknown): number {
  const value = valueAt(config, path);
  if (typeof value !== 'object' || value === null) return -1;
  const names = Object.keys(value).filter((name) => !shared.includes(name));
  const fits = ({ constants, names: known }: SpecOption) => {
    const marks = Object.entries(constants);
    if (marks.length > 0) return marks.every(([name, wanted]) => valueAt(value, [name]) === wanted);
    return names.every((name) => known.includes(name));
  };
  return options.findIndex(fits);
}

/** What stays when another option is selected: settings beside the options belong to all of them. */
export function sharedValues({ path, shared }: ChoiceNode, tree: unknown): Tree | undefined {
  const known = Object.entries((valueAt(tree, path) ?? {}) as Tree).filter(([name]) => shared.includes(name));
  return known.length === 0 ? undefined : Object.fromEntries(known);
}

/** What a new configuration begins with: the first option of each required choice. */
export function firstConfig(nodes: readonly SpecNode[]): Tree {
  return nodes.reduce<Tree>((config, node) => {
    if (node.kind === 'group') return merged(config, firstConfig(node.nodes));
    if (node.kind !== 'choice' || !node.about.required) return config;
    const [first] = node.options;
    if (!first) return config;
    return merged(merged(config, withValue({}, node.path, first.constants) as Tree), firstConfig(first.nodes));
  }, {});
}

function merged(one: Tree, other: Tree): Tree {
  return Object.entries(other).reduce<Tree>((all, [name, value]) => {
    const known = all[name];
    const isTree = [known, value].every((part) => typeof part === 'object' && part !== null && !Array.isArray(part));
    return { ...all, [name]: isTree ? merged(known as Tree, value as Tree) : value };
  }, one);
}

export interface SpecValues {
  config: unknown;
  /** `MASK`: those that are stored. */
  secrets: unknown;
}

/** The errors of all visible settings, by path. */
export function specProblems(nodes: readonly SpecNode[], values: SpecValues): Record<string, string> {
  const all = nodes.flatMap((node): [string, string][] => {
    const key = node.path.join('.');
    switch (node.kind) {
      case 'group':
        // What is optional as a whole is needed only once it has a value.
        return node.about.required || isBegun(node.path, values)
          ? Object.entries(specProblems(node.nodes, values))
          : [];
      case 'choice': {
        const option = node.options[chosenOption(node, values.config)];
        if (option) return Object.entries(specProblems(option.nodes, values));
        return node.about.required ? [[key, `Select an option for ${node.about.label}`]] : [];
      }
      case 'list': {
        const items = listAt(values.config, node.path);
        if (items.length === 0 && node.about.required) return [[key, `Add an entry to ${node.about.label}`]];
        return items.flatMap((_, at) => Object.entries(specProblems(itemNodes(node, at), values)));
      }
      default:
        return fieldProblem(node.parameter, node.path, values).map((problem) => [key, problem]);
    }
  });
  return Object.fromEntries(all);
}

const isBegun = (path: Path, { config, secrets }: SpecValues) =>
  [config, secrets].some((tree) => !isEmpty(valueAt(tree, path)));

function fieldProblem(parameter: SpecParameter, path: Path, { config, secrets }: SpecValues): string[] {
  if (parameter.secret && secrets === MASK) return [];
  const value = valueAt(parameter.secret ? secrets : config, path);
  if (isEmpty(value) && !isEmpty(parameter.default)) return [];
  const problem = problemOf(parameter, value);
  return problem === null ? [] : [problem];
}

export const listAt = (config: unknown, path: Path): unknown[] => {
  const value = valueAt(config, path);
  return Array.isArray(value) ? value : [];
};

/** The parts of one entry of a list. */
export const itemNodes = ({ item, path }: Extract<SpecNode, { kind: 'list' }>, at: number): SpecNode[] => {
  const place = [...path, at];
  const forms = formsOf(item);
  return forms.length > 0 ? [choiceOf(item, { path: place, forms, required: true })] : nodesOf(item, place);
};
