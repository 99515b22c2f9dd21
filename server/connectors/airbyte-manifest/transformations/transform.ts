import { DataError } from '../../contract/errors.ts';
import type { Transformation } from '../components/stream-components.ts';
import type { ManifestRecord, Selecting } from '../extractors/records.ts';
import { atPath, setAtPath } from '../extractors/paths.ts';
import { pyText } from '../interpolation/python-literal.ts';
import type { Scope, Templates } from '../interpolation/template.ts';
import { isMapping, numberOf, truthy } from '../interpolation/values.ts';

type Of<Type> = Extract<Transformation, { type: Type }>;
/** Records nest no deeper than that. */
const DEEPEST = 100;

/** A record after all transformations, in their order; the one handed in may be changed. */
export function transform(
  record: ManifestRecord,
  selecting: Pick<Selecting, 'transformations' | 'templates' | 'scope'>,
): ManifestRecord {
  return selecting.transformations.reduce((known, one) => apply(one, known, selecting), record);
}

type Tools = Pick<Selecting, 'templates' | 'scope'>;

function apply(one: Transformation, record: ManifestRecord, tools: Tools): ManifestRecord {
  switch (one.type) {
    case 'AddFields':
      return addFields(one, record, tools);
    case 'RemoveFields':
      return removeFields(one, record, tools);
    case 'KeysToLower':
      return renamed(record, (name) => name.toLowerCase());
    case 'KeysToSnakeCase':
      return renamed(record, snakeCase, DEEPEST);
    case 'KeysReplace':
      return renamed(record, replacer(one, tools, record), DEEPEST);
    case 'FlattenFields':
      return flattened(record, one.flatten_lists);
    case 'DpathFlattenFields':
      return spread(one, record, tools);
  }
}

const scopeOf = (tools: Tools, record: ManifestRecord, $parameters: Record<string, unknown> | undefined): Scope => ({
  ...tools.scope,
  ...($parameters && { parameters: $parameters }),
  record,
});

function addFields(
  { fields, condition, $parameters }: Of<'AddFields'>,
  record: ManifestRecord,
  tools: Tools,
): ManifestRecord {
  const { templates } = tools;
  const scope = scopeOf(tools, record, $parameters);
  if (condition && !templates.truth(condition, scope)) return record;
  for (const { path, value, value_type } of fields) {
    const found = typeof value === 'string' ? typedValue(value, value_type, { templates, scope }) : value;
    setAtPath(
      record,
      path.map((part) => templates.text(part, scope) ?? part),
      found,
    );
  }
  return record;
}

/** What a template gives, as the type that is asked for. @throws DataError when it is none */
export function typedValue(
  value: string,
  type: string | undefined,
  { templates, scope }: { templates: Templates; scope: Scope },
): unknown {
  if (type === 'string') return templates.text(value, scope);
  const found = templates.value(value, scope);
  if (type === undefined || found === null) return found;
  if (type === 'boolean') return typeof found === 'boolean' ? found : truthy(found);
  const number = numberOf(found);
  if (number === null)
    throw new DataError(
      'template_failed',
      `"${value.slice(0, 100)}" gives no ${type}, but "${pyText(found).slice(0, 100)}"`,
    );
  return type === 'integer' ? Math.trunc(number) : found;
}

function removeFields(
  { field_pointers, condition, $parameters }: Of<'RemoveFields'>,
  record: ManifestRecord,
  tools: Tools,
): ManifestRecord {
  const scope = scopeOf(tools, record, $parameters);
  const goes = (value: unknown) => !condition || tools.templates.truth(condition, { ...scope, property: value });
  for (const pointer of field_pointers)
    remove(
      record,
      pointer.map((part) => tools.templates.text(part, scope) ?? part),
      goes,
    );
  return record;
}

/** `*` is any one name, `**` any number of them. */
function remove(node: unknown, path: readonly string[], goes: (value: unknown) => boolean): void {
  const [part, ...rest] = path;
  if (part === undefined || typeof node !== 'object' || node === null) return;
  const place = node as Record<string, unknown>;
  if (part === '**') {
    for (const name of Object.keys(place)) {
      remove(place[name], path, goes);
      if (rest.length === 0 && goes(place[name])) dropAt(node, name);
    }
    if (rest.length > 0) remove(node, rest, goes);
    return;
  }
  for (const name of part === '*' ? Object.keys(place) : [part]) {
    if (!Object.hasOwn(place, name)) continue;
    if (rest.length > 0) remove(place[name], rest, goes);
    else if (goes(place[name])) dropAt(node, name);
  }
}

/** Other items of a list keep their places. */
function dropAt(node: object, name: string): void {
  if (Array.isArray(node)) node[Number(name)] = null;
  else delete (node as Record<string, unknown>)[name];
}

function renamed(record: ManifestRecord, rename: (name: string) => string, depth = 0): ManifestRecord {
  const inner = (value: unknown): unknown => {
    if (depth <= 0) return value;
    if (Array.isArray(value)) return value.map(inner);
    return isMapping(value) ? renamed(value, rename, depth - 1) : value;
  };
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [rename(name), inner(value)]));
}

function snakeCase(name: string): string {
  const words = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .match(/\d*[A-Z]+(?=[A-Z][a-z])|\d*[A-Z]?[a-z]+|[A-Z]+|\d+/g);
  return words ? words.join('_').toLowerCase() : name.toLowerCase();
}

function replacer(
  { old, new: next, $parameters }: Of<'KeysReplace'>,
  tools: Tools,
  record: ManifestRecord,
): (name: string) => string {
  const scope = scopeOf(tools, record, $parameters);
  const text = (template: string) => tools.templates.text(template, scope) ?? template;
  const [from, to] = [text(old), text(next)];
  return (name) => (from === '' ? name : name.replaceAll(from, () => to));
}

/** `a: { b: 1 }` becomes `b`, or `a.b` where there is such a name already. */
function flattened(record: ManifestRecord, lists: boolean): ManifestRecord {
  const flat: ManifestRecord = {};
  const isTaken = (name: string) => Object.hasOwn(flat, name) || Object.hasOwn(record, name);
  const walk = (value: unknown, name: string, path: string) => {
    const below = (key: string) => (path === '' ? key : `${path}.${key}`);
    if (isMapping(value)) for (const [key, part] of Object.entries(value)) walk(part, key, below(key));
    else if (lists && Array.isArray(value))
      for (const [at, part] of value.entries()) walk(part, `${name}.${at}`, below(String(at)));
    else setAtPath(flat, [name !== path && isTaken(name) ? path : name], value);
  };
  walk(record, '', '');
  return flat;
}

function spread(one: Of<'DpathFlattenFields'>, record: ManifestRecord, tools: Tools): ManifestRecord {
  const scope = scopeOf(tools, record, one.$parameters);
  const path = one.field_path.map((part) => tools.templates.text(part, scope) ?? part);
  const found = atPath(record, path);
  if (!isMapping(found)) return record;
  const fields = renamed(found, affixed(one, tools, scope));
  if (one.replace_record) return fields;
  if (one.delete_origin_value) remove(record, path, () => true);
  return { ...record, ...fields };
}

function affixed(
  { key_transformation }: Of<'DpathFlattenFields'>,
  { templates }: Tools,
  scope: Scope,
): (name: string) => string {
  const text = (template: string | null | undefined) => (template ? (templates.text(template, scope) ?? '') : '');
  const [prefix, suffix] = [text(key_transformation?.prefix), text(key_transformation?.suffix)];
  return (name) => `${prefix}${name}${suffix}`;
}
