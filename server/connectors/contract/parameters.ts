import { z } from 'zod';
import type { AnyConnector } from './connector.ts';

/** What `.meta({ … })` declares about a field of a connector's `config`. Only `label` is required. */
export interface ParameterMeta {
  label?: string;
  /** Stored encrypted, never shown, redacted in every log. */
  secret?: boolean;
  /**
   * The value decides where the secrets are sent: host, port, address, TLS mode, definition. A change of it needs the
   * secrets again. Default: true, except for secrets. Only a parameter that cannot redirect anything states `false`.
   */
  directs_secrets?: boolean;
  /** Text in a language of its own, with templates or references. The API has it validated in a limited process. */
  document?: boolean;
  /** URLs. Their user names, passwords, query values and keys in the path are secrets; the rest is shown. */
  keyed_address?: boolean;
  placeholder?: string;
  /** Labels of the values of an enum. Default: the value itself. */
  value_labels?: Record<string, string>;
  /** Parameters that `possibleValues` needs. */
  depends_on?: string[];
  /** The field is shown only while another parameter has one of these values. */
  visible_when?: { parameter: string; equals: (string | number | boolean)[] };
  group?: 'connection' | 'authentication' | 'advanced' | 'stream';
  /** Only `check` can tell whether the value is valid. */
  validates_remotely?: boolean;
  /** Set only if it does not follow from the zod type. */
  parameter_type?: 'ssh_tunnel';
}

declare module 'zod' {
  interface GlobalMeta extends ParameterMeta {}
}

export const PARAMETER_TYPES = [
  'string',
  'integer',
  'number',
  'boolean',
  'date',
  'enum',
  'multi_enum',
  'object',
  'string_list',
  'ssh_tunnel',
] as const;
export type ParameterType = (typeof PARAMETER_TYPES)[number];

/** A setting as the catalog of connectors and the forms show it. */
export interface ConnectorParameter {
  name: string;
  label: string;
  description?: string;
  type: ParameterType;
  required: boolean;
  secret: boolean;
  /** Changing the value needs the stored secrets again. False if the connector has no secrets. */
  directs_secrets: boolean;
  keyed_address: boolean;
  default?: unknown;
  placeholder?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  /** Value to label. */
  possible_values?: Record<string, string>;
  dynamic_possible_values: boolean;
  depends_on?: string[];
  visible_when?: { parameter: string; equals: (string | number | boolean)[] };
  group: 'connection' | 'authentication' | 'advanced' | 'stream';
  order: number;
  validates_remotely: boolean;
}

export interface ParameterProblem {
  /** Empty if the settings as a whole are not an object. */
  parameter: string;
  /** `missing_parameter`, `invalid_parameter`, or the code that a connector sets with `params: { code }` of an issue. */
  code: string;
  message: string;
}

export type ParsedParameters = { config: Record<string, unknown> } | { problems: ParameterProblem[] };

interface JsonProperty extends ParameterMeta {
  description?: string;
  type?: string | string[];
  format?: string;
  enum?: string[];
  items?: JsonProperty;
  anyOf?: JsonProperty[];
  default?: unknown;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

/** The settings of a connector, in the order of its `config`. */
export function describeParameters(connector: AnyConnector): ConnectorParameter[] {
  const { properties, required } = jsonOf(connector.config);
  const dynamic = new Set(Object.keys(connector.possibleValues ?? {}));
  const hasSecrets = Object.values(properties).some(({ secret }) => secret === true);
  return Object.entries(properties).map(([name, property], order) => ({
    ...describe(name, property),
    directs_secrets: hasSecrets && (property.directs_secrets ?? property.secret !== true),
    required: required.has(name),
    dynamic_possible_values: dynamic.has(name),
    order,
  }));
}

/** The names of the settings that are secrets. */
export const secretNames = (config: z.ZodObject): string[] => namesWith(config, ({ secret }) => secret === true);

/** The names of the settings that are URLs with credentials in them. */
export const keyedAddressNames = (config: z.ZodObject): string[] =>
  namesWith(config, ({ keyed_address }) => keyed_address === true);

/** The names of the settings that are documents. */
export const documentNames = (config: z.ZodObject): string[] => namesWith(config, ({ document }) => document === true);

function namesWith(config: z.ZodObject, isWanted: (property: JsonProperty) => boolean): string[] {
  return Object.entries(jsonOf(config).properties)
    .filter(([, property]) => isWanted(property))
    .map(([name]) => name);
}

const strict = new WeakMap<z.ZodObject, z.ZodObject>();

/** Derived once for each connector: zod compiles each schema that it has not seen. */
function strictOf(config: z.ZodObject): z.ZodObject {
  const derived = strict.get(config) ?? config.strict();
  strict.set(config, derived);
  return derived;
}

/** Validates settings that a user sent, including secrets, and fills in the defaults. Unknown names are problems too. */
export function parseParameters(connector: AnyConnector, value: unknown): ParsedParameters {
  const result = strictOf(connector.config).safeParse(value);
  if (result.success) return { config: result.data };
  const given: Record<string, unknown> = typeof value === 'object' && value !== null ? { ...value } : {};
  const problems = result.error.issues.flatMap((issue) => problemsOf(issue, given));
  return { problems: problems.filter((problem, at) => !isRepeated(problem, problems.slice(0, at))) };
}

/** What the connector receives for one setting: with its default. A document is returned as it is. */
export function receivedValue(connector: AnyConnector, name: string, values: Record<string, unknown>): unknown {
  const given = values[name] ?? null;
  if (documentNames(connector.config).includes(name)) return given;
  return connector.config.shape[name]?.safeParse(given ?? undefined).data ?? given;
}

/** A missing parameter violates several rules at once; one problem is enough. */
const isRepeated = (problem: ParameterProblem, earlier: ParameterProblem[]) =>
  earlier.some(({ parameter, code }) => parameter === problem.parameter && code === 'missing_parameter');

function problemsOf(issue: z.core.$ZodIssue, given: Record<string, unknown>): ParameterProblem[] {
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0) {
    return issue.keys.map((parameter) => ({
      parameter,
      code: 'invalid_parameter',
      message: `Unknown parameter "${parameter}"`,
    }));
  }
  const parameter = String(issue.path[0] ?? '');
  const absent = parameter !== '' && [undefined, null, ''].includes(given[parameter] as string | null | undefined);
  if (absent && issue.path.length === 1 && issue.code !== 'custom') {
    return [{ parameter, code: 'missing_parameter', message: `Parameter "${parameter}" is required` }];
  }
  const code = issue.code === 'custom' ? issue.params?.code : undefined;
  return [{ parameter, code: typeof code === 'string' ? code : 'invalid_parameter', message: issue.message }];
}

interface ConfigJson {
  properties: Record<string, JsonProperty>;
  required: Set<string>;
}

const configs = new WeakMap<z.ZodObject, ConfigJson>();

/** Converted once for each connector: requests and attempts ask several times, at some 2 ms each on an idle machine. */
function jsonOf(config: z.ZodObject): ConfigJson {
  const known = configs.get(config);
  if (known) return known;
  const json = z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' });
  const properties = (json.properties ?? {}) as Record<string, JsonProperty>;
  const converted = { properties, required: new Set(json.required ?? []) };
  configs.set(config, converted);
  return converted;
}

function describe(name: string, property: JsonProperty) {
  const type = typeOf(property);
  const minimum = bound(property.minimum);
  const maximum = bound(property.maximum);
  const values = type === 'enum' ? enumOf(property) : type === 'multi_enum' ? property.items?.enum : undefined;
  return {
    name,
    label: property.label ?? name,
    ...(property.description !== undefined && { description: property.description }),
    type,
    secret: property.secret === true,
    keyed_address: property.keyed_address === true,
    ...(property.default !== undefined && property.default !== null && { default: property.default }),
    ...(property.placeholder !== undefined && { placeholder: property.placeholder }),
    ...(type === 'string' && property.pattern !== undefined && { pattern: property.pattern }),
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
    ...(values && { possible_values: labelled(values, property.value_labels ?? {}) }),
    ...(property.depends_on && { depends_on: property.depends_on }),
    ...(property.visible_when && { visible_when: property.visible_when }),
    group: property.group ?? ('connection' as const),
    validates_remotely: property.validates_remotely === true,
  };
}

const labelled = (values: string[], labels: Record<string, string>) =>
  Object.fromEntries(values.map((value) => [value, labels[value] ?? value]));

const enumOf = (property: JsonProperty) => withoutNull(property).enum;

/** JSON Schema expresses a nullable field as `anyOf` or as a list of types. */
const withoutNull = (property: JsonProperty): JsonProperty =>
  property.anyOf?.find((choice) => choice.type !== 'null') ?? property;

function typeOf(property: JsonProperty): ParameterType {
  if (property.parameter_type) return property.parameter_type;
  const plain = withoutNull(property);
  const type = Array.isArray(plain.type) ? plain.type.find((name) => name !== 'null') : plain.type;
  if (plain.enum) return 'enum';
  if (type === 'array') return plain.items?.enum ? 'multi_enum' : 'string_list';
  if (type === 'string') return plain.format === 'date' ? 'date' : 'string';
  if (type === 'integer' || type === 'number' || type === 'boolean' || type === 'object') return type;
  throw new Error(`A parameter cannot be of the type ${String(type)}`);
}

/** zod adds the limits of safe integers even if the connector sets none. */
const bound = (value: number | undefined) =>
  value !== undefined && Math.abs(value) === Number.MAX_SAFE_INTEGER ? undefined : value;
