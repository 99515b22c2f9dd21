import { ConfigurationError, DataError } from '../../contract/errors.ts';
import type { ApiRecord } from '../../kits/rest/records.ts';
import type { DynamicSchema, ItemType } from '../components/stream-components.ts';
import type { Property } from './property.ts';
import { allPages, readingBy } from '../retrievers/slices.ts';
import { atPath } from '../interpolation/dpath.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Scope } from '../interpolation/template.ts';
import { transformed } from '../extractors/record-selector.ts';

const nullable = (type: string, more: Partial<Property> = {}): Property => ({ type: ['null', type], ...more });
const TYPES: Record<string, Property> = {
  string: nullable('string'),
  boolean: nullable('boolean'),
  date: nullable('string', { format: 'date' }),
  timestamp_without_timezone: nullable('string', { format: 'date-time', airbyte_type: 'timestamp_without_timezone' }),
  timestamp_with_timezone: nullable('string', { format: 'date-time' }),
  time_without_timezone: nullable('string', { format: 'time', airbyte_type: 'time_without_timezone' }),
  time_with_timezone: nullable('string', { format: 'time', airbyte_type: 'time_with_timezone' }),
  integer: nullable('integer'),
  number: nullable('number'),
  array: nullable('array'),
  object: nullable('object'),
};

/** The properties that the service describes in the first record of the loader's retriever. */
export async function dynamicProperties(
  runtime: Runtime,
  name: string,
  loader: DynamicSchema,
): Promise<Record<string, Property>> {
  const { templates } = runtime;
  const { schema_pointer, key_pointer, type_pointer, $parameters } = loader.schema_type_identifier;
  const scope = { ...runtime.scope, parameters: $parameters ?? loader.$parameters ?? {} };
  const at = (value: unknown, pointer: readonly string[]) =>
    atPath(
      value,
      pointer.map((part) => templates.text(part, scope) ?? part),
    );
  const described = at(await firstRecord(runtime, name, loader), schema_pointer) ?? [];
  if (!Array.isArray(described))
    throw new DataError('malformed_schema', `${name}: the description of the fields is not a list`);
  const entries = described.map((raw_schema: unknown): [string, Property] => {
    const key = at(raw_schema, key_pointer);
    if (typeof key !== 'string')
      throw new DataError('malformed_schema', `${name}: a field in the description has no name`);
    const reported = (type_pointer ? at(raw_schema, type_pointer) : null) ?? 'string';
    return [key, propertyOf(mappedType(runtime, loader, { reported, raw_schema }), `${name}, field "${key}"`)];
  });
  const filter = loader.schema_filter;
  const isKept = ([key, property]: [string, Property]) =>
    !filter?.condition ||
    templates.truth(filter.condition, { ...scope, parameters: filter.$parameters ?? {}, record: { [key]: property } });
  const known: ApiRecord = Object.fromEntries(entries.filter(isKept));
  const { schema_transformations: transformations } = loader;
  const transforming = { transformations, templates, scope, python: runtime.python };
  return ((await transformed(transforming, [known]))[0] ?? {}) as Record<string, Property>;
}

async function firstRecord(runtime: Runtime, name: string, { retriever }: DynamicSchema): Promise<ApiRecord> {
  for await (const { records } of allPages(readingBy(runtime, name, retriever))) if (records[0]) return records[0];
  return {};
}

function mappedType(
  { templates, scope }: Runtime,
  { schema_type_identifier: { types_mapping } }: DynamicSchema,
  { reported, raw_schema }: { reported: unknown; raw_schema: unknown },
): unknown {
  const inScope: Scope = { ...scope, parameters: {}, raw_schema };
  const found = types_mapping.find(
    ({ current_type, condition }) =>
      Bun.deepEquals(current_type, reported) && (!condition || templates.truth(condition, inScope)),
  );
  return found ? found.target_type : reported;
}

function propertyOf(type: unknown, place: string): Property {
  if (Array.isArray(type) && type.length === 2 && type.every((one) => typeof one === 'string'))
    return { oneOf: type.map((one) => propertyOf(one, place)) };
  const name = typeof type === 'string' ? type : (type as Exclude<ItemType, string> | null)?.field_type;
  const known = name !== undefined && Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
  if (known) return known;
  throw new ConfigurationError(
    'unknown_type',
    `${place}: unknown type ${JSON.stringify(type).slice(0, 100)}. Map it in types_mapping of the manifest.`,
  );
}
