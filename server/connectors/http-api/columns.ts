import type { LogicalType, StreamSchema } from '../contract/connector.ts';
import { widenType } from '../cells/json-cells.ts';
import { type InferredColumn, inferredColumn, inferTypes, streamSchema } from '../kits/rest/columns.ts';
import { type ApiRecord, firstRecords } from '../kits/rest/records.ts';
import type { Api } from './api.ts';
import type { Property, StreamDefinition } from './definition.ts';
import { readAllPages } from './pages.ts';

/**
 * A stream as the catalog stores it. Without a declared schema the columns are inferred from its first records. Of a
 * stream with a job they are those that are known, since records would cost another job.
 */
export async function describeStream(api: Api, stream: StreamDefinition): Promise<StreamSchema> {
  const known = stream.job && api.ctx.known?.find(({ name }) => name === stream.name);
  if (!stream.schema && known) return described(stream, knownColumns(known));
  return schemaFrom(stream, stream.schema ? [] : await firstRecords(readAllPages(api, stream), stream.infer_records));
}

/** A stream whose columns are declared, or inferred from records. */
export const schemaFrom = (stream: StreamDefinition, records: ApiRecord[]): StreamSchema =>
  described(stream, stream.schema ? declaredColumns(stream.schema.properties) : inferredColumns(stream, records));

const knownColumns = ({ fields }: StreamSchema): Map<string, InferredColumn> =>
  new Map(fields.map(({ path, type, source_type, nullable }) => [path.join('.'), { type, source_type, nullable }]));

function described(stream: StreamDefinition, columns: Map<string, InferredColumn>): StreamSchema {
  const { incremental, primary_key } = stream;
  for (const name of Object.keys({ ...stream.parent?.fields, ...stream.items?.fields }))
    columns.set(name, columns.get(name) ?? inferredColumn('string'));
  return streamSchema({
    name: stream.name,
    description: stream.description,
    columns,
    key: primary_key === undefined ? [] : [primary_key].flat(),
    cursor: incremental?.cursor_field ?? null,
    supports_date_window: incremental?.type === 'time',
  });
}

const FORMATS: Record<NonNullable<Property['format']>, LogicalType> = {
  date: 'date',
  'date-time': 'timestamp_tz',
  'local-date-time': 'timestamp',
  time: 'time',
  'unix-time': 'timestamp_tz',
  'unix-time-ms': 'timestamp_tz',
};

const declaredColumns = (properties: Record<string, Property>): Map<string, InferredColumn> =>
  new Map(Object.entries(properties).map(([name, property]) => [name, declaredColumn(property)]));

function declaredColumn({ type, format }: Property): InferredColumn {
  const names = [type].flat();
  const types = names.filter((name) => name !== 'null').map((name): LogicalType => (name === 'object' ? 'json' : name));
  const widest = types.reduce<LogicalType | null>((known, one) => widenType(known, one), null) ?? 'string';
  return {
    type: format ? FORMATS[format] : widest,
    source_type: `${names.join('|')}${format ? `(${format})` : ''}`,
    nullable: names.includes('null') || names.length === 1,
  };
}

function inferredColumns({ incremental }: StreamDefinition, records: ApiRecord[]): Map<string, InferredColumn> {
  const cursor = incremental?.type === 'time' ? incremental.cursor_field : null;
  const types = inferTypes(records, cursor);
  return new Map(Array.from(types, ([name, type]) => [name, inferredColumn(type)]));
}
