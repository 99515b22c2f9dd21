import type { Field, LogicalType, StreamSchema } from '../../contract/connector.ts';
import { typesIn } from '../../kits/rest/columns.ts';
import { widenType } from '../../cells/json-cells.ts';
import type { AnyStream, DeclarativeStream } from '../components/stream-components.ts';
import { isIncremental } from '../delegation.ts';
import { dynamicProperties } from './dynamic-schema.ts';
import { partsOf, readingOf } from '../partitions/slices.ts';
import type { ManifestRecord } from '../extractors/records.ts';
import type { Runtime } from '../runtime.ts';

/** Records that tell the types where the manifest does not. */
const SAMPLE = 1000;

export interface Property {
  type?: string | string[];
  format?: string;
  airbyte_type?: string;
  oneOf?: Property[];
  anyOf?: Property[];
}

/** The properties that the manifest's schemas give, or have the service tell; the first loader counts most. */
async function schemaOf(
  runtime: Runtime,
  { name, schema_loader }: DeclarativeStream,
): Promise<Record<string, Property>> {
  const found: Record<string, Property> = {};
  for (const loader of schema_loader.toReversed()) {
    if (loader.type === 'DynamicSchemaLoader') Object.assign(found, await dynamicProperties(runtime, name, loader));
    if (loader.type === 'InlineSchemaLoader') Object.assign(found, loader.schema?.properties);
  }
  return found;
}

/** The columns whose types the manifest or the service says; of the others any value is taken. */
export function declaredColumns({ schema_loader }: DeclarativeStream, all: string[]): Set<string> {
  if (schema_loader.some(({ type }) => type === 'DynamicSchemaLoader')) return new Set(all);
  return new Set(
    schema_loader.flatMap((loader) =>
      loader.type === 'InlineSchemaLoader' ? Object.keys(loader.schema?.properties ?? {}) : [],
    ),
  );
}

/** A stream as the catalog has it. */
export async function describeStream(runtime: Runtime, whole: AnyStream): Promise<StreamSchema> {
  const reading = readingOf(runtime, whole, null);
  const { stream } = reading;
  const properties = await schemaOf(runtime, stream);
  const declared = Object.entries(properties).map(([name, property]) => [name, typeOf(property)] as const);
  const cursor = isIncremental(whole) ? (reading.cursor?.field ?? null) : null;
  const types =
    declared.length > 0 ? new Map<string, LogicalType>(declared) : typesIn(await sample(runtime, stream), cursor);
  const key = keyOf(stream);
  for (const name of [...key, ...(cursor === null ? [] : [cursor])]) types.set(name, types.get(name) ?? 'string');
  const fields = Array.from(
    types,
    ([name, type]): Field => ({
      path: [name],
      type,
      source_type: sourceType(properties[name]),
      dialect: null,
      nullable: !key.includes(name),
      is_primary_key: key.includes(name),
      is_cursor_candidate: name === cursor,
    }),
  );
  return {
    namespace: null,
    name: stream.name,
    description: stream.description ?? null,
    fields,
    supported_sync_modes: cursor === null ? ['full_refresh'] : ['full_refresh', 'incremental'],
    source_defined_cursor: cursor !== null,
    default_cursor_field: cursor === null ? null : [cursor],
    source_defined_primary_key: key.length > 0 ? key.map((name) => [name]) : null,
    is_resumable: cursor !== null,
    supports_date_window: cursor !== null,
    suggested: true,
  };
}

/** The columns of the key; none where it lies deeper than columns do. */
function keyOf({ primary_key: key }: DeclarativeStream): string[] {
  if (key === null || key === undefined || key === '') return [];
  const paths = typeof key === 'string' ? [[key]] : key.map((part) => (typeof part === 'string' ? [part] : part));
  return paths.every((path) => path.length === 1) ? paths.flat() : [];
}

const sourceType = (property: Property | undefined): string | null => {
  if (!property?.type) return null;
  const names = [property.type].flat().join('|');
  return property.format ? `${names}(${property.format})` : names;
};

/** The type of a property of JSON Schema, as Airbyte's destinations take it. */
function typeOf(property: Property | boolean): LogicalType {
  if (typeof property !== 'object') return 'json';
  const { type, format, airbyte_type } = property;
  const choices = property.oneOf ?? property.anyOf;
  if (type === undefined && choices)
    return (
      choices
        .filter((one) => one.type !== 'null')
        .map(typeOf)
        .reduce<LogicalType | null>(widenType, null) ?? 'json'
    );
  const names = [type ?? []].flat().filter((name) => name !== 'null');
  const kinds = names.map((name) => single(name, { format, airbyte_type }));
  return kinds.reduce<LogicalType | null>(widenType, null) ?? (type === undefined ? 'json' : 'string');
}

function single(
  name: string,
  { format, airbyte_type }: { format: string | undefined; airbyte_type: string | undefined },
): LogicalType {
  if (name === 'string') {
    if (format === 'date') return 'date';
    if (format === 'date-time') return airbyte_type === 'timestamp_without_timezone' ? 'timestamp' : 'timestamp_tz';
    return 'string';
  }
  if (name === 'number') return airbyte_type === 'integer' ? 'integer' : 'number';
  if (name === 'integer' || name === 'boolean' || name === 'array') return name;
  return 'json';
}

async function sample(runtime: Runtime, stream: DeclarativeStream): Promise<ManifestRecord[]> {
  const records: ManifestRecord[] = [];
  const parts = partsOf(readingOf(runtime, stream, null));
  try {
    for await (const { items } of parts) {
      for await (const page of items) {
        records.push(...page.records);
        if (records.length >= SAMPLE) return records.slice(0, SAMPLE);
      }
    }
    return records;
  } finally {
    await parts.return(undefined);
  }
}
