import type { Mapping } from '../components/source-components.ts';
import { isObject, type Json, type JsonObject } from '../components/references.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { isMapping, truthy } from '../interpolation/values.ts';
import { typedValue } from '../interpolation/typed-value.ts';

/** A copy of the stream template with the mapped values in place. */
export function mapComponents(
  template: JsonObject,
  mappings: readonly Mapping[],
  { templates, scope }: Interpolation,
): JsonObject {
  let mapped = template;
  for (const { field_path, value, value_type, condition, create_or_update } of mappings) {
    if (condition && !templates.truth(condition, scope)) continue;
    const found: Found = {
      value: typedValue(value, value_type ?? undefined, { templates, scope }) as Json,
      text: templates.text(value, scope) ?? '',
    };
    const path = field_path.map((part) => templates.text(part, scope) ?? part);
    const { node, count } = updated(mapped, path, found);
    if (count > 0) mapped = node as JsonObject;
    else if (create_or_update && truthy(found.value)) mapped = created(mapped, path, found.value) as JsonObject;
  }
  return mapped;
}

interface Found {
  value: Json;
  /** As the template has it: `1.10` keeps its zero. */
  text: string;
}

interface Updated {
  node: Json;
  count: number;
}

/** Replaces existing values. `*` matches one name, `**` any number of names. */
function updated(node: Json, path: readonly string[], found: Found): Updated {
  const [part, ...rest] = path;
  if (part === undefined) return { node: fitting(node, found), count: 1 };
  if (typeof node !== 'object' || node === null) return { node, count: 0 };
  const copy = (Array.isArray(node) ? [...node] : { ...node }) as JsonObject;
  let count = 0;
  const put = (name: string, deeper: readonly string[]) => {
    const below = updated(copy[name] as Json, deeper, found);
    copy[name] = below.node;
    count += below.count;
  };
  for (const name of Object.keys(copy)) {
    if (part === '**') {
      put(name, path);
      if (rest.length > 0 && matches(rest[0], name)) put(name, rest.slice(1));
    } else if (matches(part, name)) put(name, rest);
  }
  return { node: copy, count };
}

const matches = (part: string | undefined, name: string) => part === '*' || part === name;

/** Text replaces text as it is. Elsewhere, and in place of empty text, YAML in the value is parsed. */
function fitting(before: Json, { value, text }: Found): Json {
  if (typeof before === 'string' && typeof value !== 'object') return before === '' ? structured(text) : text;
  return typeof value === 'string' ? structured(value) : value;
}

function structured(text: string): Json {
  // A template is not YAML, though texts in YAML may be templates.
  if (/^\s*\{[{%]/.test(text)) return text;
  // Loaded with its first use: processes start often, and most never need it.
  const { parse } = require('yaml') as typeof import('yaml');
  try {
    const found = parse(text, { maxAliasCount: 0, logLevel: 'silent' }) as Json;
    return typeof found === 'object' && found !== null ? found : text;
  } catch {
    return text;
  }
}

function created(node: Json | undefined, path: readonly string[], value: Json): Json {
  const [part, ...rest] = path;
  if (part === undefined) return typeof value === 'string' ? structured(value) : value;
  if (Array.isArray(node)) {
    const at = Math.min(Number(part), node.length);
    return Number.isInteger(at) ? node.toSpliced(at, 1, created(node[at], rest, value)) : node;
  }
  const around = isMapping(node) && isObject(node) ? node : {};
  return { ...around, [part]: created(around[part], rest, value) };
}
