import { widenType } from '../../cells/json-cells.ts';
import type { LogicalType, StreamSchema } from '../../contract/connector.ts';
import { type InferredColumn, inferredColumn, inferTypes, streamSchema } from '../../kits/rest/columns.ts';
import { firstRecords } from '../../kits/rest/records.ts';
import type { AnyStream, DeclarativeStream } from '../components/stream-components.ts';
import { isIncremental } from '../incremental/state-delegation.ts';
import { dynamicProperties } from './dynamic-schema.ts';
import { inPython } from '../python/session.ts';
import { allPages, readingOf } from '../retrievers/slices.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Property } from './property.ts';

/** Number of records from which types are inferred. */
const SAMPLE_SIZE = 1000;

/** The properties of all schema loaders. Of several loaders the first one takes precedence. */
async function schemaOf(
  runtime: Runtime,
  { name, schema_loader }: DeclarativeStream,
): Promise<Record<string, Property>> {
  const found: Record<string, Property> = {};
  for (const loader of schema_loader.toReversed()) {
    if (loader.type === 'DynamicSchemaLoader') Object.assign(found, await dynamicProperties(runtime, name, loader));
    if (loader.type === 'PythonSchemaLoader') Object.assign(found, await customProperties(runtime, loader.component));
    if (loader.type === 'InlineSchemaLoader') Object.assign(found, loader.schema?.properties);
  }
  return found;
}

async function customProperties({ python }: Runtime, component: unknown): Promise<Record<string, Property>> {
  const schema = (await inPython(python).call(component, 'schema')) as { properties?: Record<string, Property> };
  return schema.properties ?? {};
}

/** What a normalization in Python converts records to. */
export async function jsonSchemaOf(runtime: Runtime, stream: DeclarativeStream): Promise<Record<string, unknown>> {
  return { type: 'object', properties: await schemaOf(runtime, stream) };
}

/** The columns with a declared type. Others accept any value. */
export function declaredColumns({ schema_loader }: DeclarativeStream, all: string[]): Set<string> {
  const isDynamic = schema_loader.some(({ type }) => type === 'DynamicSchemaLoader' || type === 'PythonSchemaLoader');
  if (isDynamic) return new Set(all);
  return new Set(
    schema_loader.flatMap((loader) =>
      loader.type === 'InlineSchemaLoader' ? Object.keys(loader.schema?.properties ?? {}) : [],
    ),
  );
}

/** A stream as the catalog stores it. */
export async function describeStream(runtime: Runtime, whole: AnyStream): Promise<StreamSchema> {
  const reading = readingOf(runtime, whole, null);
  const { stream } = reading;
  const properties = await schemaOf(runtime, stream);
  const cursor = isIncremental(whole) ? (reading.cursor?.field ?? null) : null;
  const isDeclared = Object.keys(properties).length > 0;
  return streamSchema({
    name: stream.name,
    description: stream.description ?? null,
    columns: isDeclared ? declaredTypes(properties) : await inferredTypes(runtime, stream, cursor),
    key: keyOf(stream),
    cursor,
    supports_date_window: cursor !== null && reading.cursor?.isTime === true,
  });
}

const declaredTypes = (properties: Record<string, Property>): Map<string, InferredColumn> =>
  new Map(
    Object.entries(properties).map(([name, property]) => [
      name,
      { type: typeOf(property), source_type: sourceType(property), nullable: true },
    ]),
  );

async function inferredTypes(
  runtime: Runtime,
  stream: DeclarativeStream,
  cursor: string | null,
): Promise<Map<string, InferredColumn>> {
  const records = await firstRecords(allPages(readingOf(runtime, stream, null)), SAMPLE_SIZE);
  return new Map(Array.from(inferTypes(records, cursor), ([name, type]) => [name, inferredColumn(type)]));
}

/** The columns of the key; none when the key is nested, since columns are not. */
function keyOf({ primary_key: key }: DeclarativeStream): string[] {
  if (key === null || key === undefined || key === '') return [];
  const paths = typeof key === 'string' ? [[key]] : key.map((part) => (typeof part === 'string' ? [part] : part));
  return paths.every((path) => path.length === 1) ? paths.flat() : [];
}

const sourceType = (property: Property | null): string | null => {
  if (!property?.type) return null;
  const names = [property.type].flat().join('|');
  return property.format ? `${names}(${property.format})` : names;
};

/** The type of a JSON Schema property, by the rules of Airbyte's destinations. */
/** @param property null: the schema has the name alone */
export function typeOf(property: Property | boolean | null): LogicalType {
  if (typeof property !== 'object' || property === null) return 'json';
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
