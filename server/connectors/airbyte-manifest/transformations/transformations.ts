import type { ApiRecord } from '../../kits/rest/records.ts';
import type { SyncTransformation } from '../components/record-components.ts';
import { atPath, setAtPath } from '../interpolation/dpath.ts';
import type { Interpolation, Scope } from '../interpolation/template.ts';
import { typedValue } from '../interpolation/typed-value.ts';
import { isMapping } from '../interpolation/values.ts';

type Of<Type> = Extract<SyncTransformation, { type: Type }>;
/** Deeper values keep their names. */
const MAX_DEPTH = 100;

/** Applies all transformations in order. May change the given record. */
export function transform(
  record: ApiRecord,
  transforming: Interpolation & { transformations: SyncTransformation[] },
): ApiRecord {
  return transforming.transformations.reduce((known, one) => apply(one, known, transforming), record);
}

function apply(one: SyncTransformation, record: ApiRecord, interpolation: Interpolation): ApiRecord {
  switch (one.type) {
    case 'AddFields':
      return addFields(one, record, interpolation);
    case 'RemoveFields':
      return removeFields(one, record, interpolation);
    case 'KeysToLower':
      return renamed(record, (name) => name.toLowerCase());
    case 'KeysToSnakeCase':
      return renamed(record, snakeCase, MAX_DEPTH);
    case 'KeysReplace':
      return renamed(record, replacer(one, interpolation, record), MAX_DEPTH);
    case 'FlattenFields':
      return flattened(record, one.flatten_lists);
    case 'DpathFlattenFields':
      return spread(one, record, interpolation);
  }
}

const scopeOf = (
  interpolation: Interpolation,
  record: ApiRecord,
  $parameters: Record<string, unknown> | undefined,
): Scope => ({
  ...interpolation.scope,
  ...($parameters && { parameters: $parameters }),
  record,
});

function addFields(
  { fields, condition, $parameters }: Of<'AddFields'>,
  record: ApiRecord,
  interpolation: Interpolation,
): ApiRecord {
  const { templates } = interpolation;
  const scope = scopeOf(interpolation, record, $parameters);
  for (const { path, value, value_type } of fields) {
    const evaluated = () => (typeof value === 'string' ? typedValue(value, value_type, { templates, scope }) : value);
    // A condition may ask for the value. Where it does not, one that is not added need not be possible.
    const own = {
      ...scope,
      path,
      get value() {
        return evaluated();
      },
    };
    if (condition && !templates.truth(condition, own)) continue;
    const found = evaluated();
    setAtPath(
      record,
      path.map((part) => templates.text(part, scope) ?? part),
      found,
    );
  }
  return record;
}

function removeFields(
  { field_pointers, condition, $parameters }: Of<'RemoveFields'>,
  record: ApiRecord,
  interpolation: Interpolation,
): ApiRecord {
  const scope = scopeOf(interpolation, record, $parameters);
  const isRemoved = (value: unknown) =>
    !condition || interpolation.templates.truth(condition, { ...scope, property: value });
  for (const pointer of field_pointers)
    remove(
      record,
      pointer.map((part) => interpolation.templates.text(part, scope) ?? part),
      isRemoved,
    );
  return record;
}

/** `*` matches one name, `**` any number of names. */
function remove(node: unknown, path: readonly string[], isRemoved: (value: unknown) => boolean): void {
  const [part, ...rest] = path;
  if (part === undefined || typeof node !== 'object' || node === null) return;
  const place = node as Record<string, unknown>;
  if (part === '**') {
    for (const name of Object.keys(place)) {
      remove(place[name], path, isRemoved);
      if (rest.length === 0 && isRemoved(place[name])) dropAt(node, name);
    }
    if (rest.length > 0) remove(node, rest, isRemoved);
    return;
  }
  for (const name of part === '*' ? Object.keys(place) : [part]) {
    if (!Object.hasOwn(place, name)) continue;
    if (rest.length > 0) remove(place[name], rest, isRemoved);
    else if (isRemoved(place[name])) dropAt(node, name);
  }
}

/** In a list the item becomes null, so that the others keep their positions. */
function dropAt(node: object, name: string): void {
  if (Array.isArray(node)) node[Number(name)] = null;
  else delete (node as Record<string, unknown>)[name];
}

function renamed(record: ApiRecord, rename: (name: string) => string, depth = 0): ApiRecord {
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
  interpolation: Interpolation,
  record: ApiRecord,
): (name: string) => string {
  const scope = scopeOf(interpolation, record, $parameters);
  const text = (template: string) => interpolation.templates.text(template, scope) ?? template;
  const [from, to] = [text(old), text(next)];
  return (name) => (from === '' ? name : name.replaceAll(from, () => to));
}

/** `a: { b: 1 }` becomes `b`, or `a.b` where the name `b` is taken. */
function flattened(record: ApiRecord, lists: boolean): ApiRecord {
  const flat: ApiRecord = {};
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

function spread(one: Of<'DpathFlattenFields'>, record: ApiRecord, interpolation: Interpolation): ApiRecord {
  const scope = scopeOf(interpolation, record, one.$parameters);
  const path = one.field_path.map((part) => interpolation.templates.text(part, scope) ?? part);
  const found = atPath(record, path);
  if (!isMapping(found)) return record;
  const fields = renamed(found, affixed(one, interpolation, scope));
  if (one.replace_record) return fields;
  if (one.delete_origin_value) remove(record, path, () => true);
  return { ...record, ...fields };
}

function affixed(
  { key_transformation }: Of<'DpathFlattenFields'>,
  { templates }: Interpolation,
  scope: Scope,
): (name: string) => string {
  const text = (template: string | null | undefined) => (template ? (templates.text(template, scope) ?? '') : '');
  const [prefix, suffix] = [text(key_transformation?.prefix), text(key_transformation?.suffix)];
  return (name) => `${prefix}${name}${suffix}`;
}
