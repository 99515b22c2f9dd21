import type { Field, LogicalType, StreamSchema } from '../../contract/connector.ts';
import { TypeInference } from '../../cells/normalizers.ts';
import { jsonType, widenType } from '../../cells/json-cells.ts';
import type { Api } from '../../http-api/api.ts';
import type { Property, StreamDefinition } from '../../http-api/definition.ts';
import { type ApiRecord, readPages, wholeOf } from '../../http-api/pages.ts';

const TIMES: ReadonlySet<LogicalType> = new Set(['date', 'timestamp', 'timestamp_tz']);

/** A stream as the catalog has it. Without a declared schema its first records are looked at. */
export async function describeStream(api: Api, stream: StreamDefinition): Promise<StreamSchema> {
  const { incremental, primary_key } = stream;
  const key = primary_key === undefined ? [] : [primary_key].flat();
  const types = stream.schema ? declaredTypes(stream) : await inferTypes(api, stream);
  for (const name of Object.keys(stream.parent?.fields ?? {})) types.set(name, types.get(name) ?? plain('string'));
  for (const name of [...key, incremental?.cursor_field ?? []].flat())
    types.set(name, types.get(name) ?? plain('string'));
  const fields = Array.from(
    types,
    ([name, { type, source_type, nullable }]): Field => ({
      path: [name],
      type,
      source_type,
      dialect: null,
      nullable: nullable && !key.includes(name),
      is_primary_key: key.includes(name),
      is_cursor_candidate: name === incremental?.cursor_field,
    }),
  );
  return {
    namespace: null,
    name: stream.name,
    description: stream.description,
    fields,
    supported_sync_modes: incremental ? ['full_refresh', 'incremental'] : ['full_refresh'],
    source_defined_cursor: incremental !== undefined,
    default_cursor_field: incremental ? [incremental.cursor_field] : null,
    source_defined_primary_key: key.length > 0 ? key.map((name) => [name]) : null,
    is_resumable: incremental !== undefined,
    supports_date_window: incremental?.type === 'time',
    suggested: true,
  };
}

interface ColumnType {
  type: LogicalType;
  source_type: string | null;
  nullable: boolean;
}

const plain = (type: LogicalType): ColumnType => ({ type, source_type: null, nullable: true });

const FORMATS: Record<NonNullable<Property['format']>, LogicalType> = {
  date: 'date',
  'date-time': 'timestamp_tz',
  'local-date-time': 'timestamp',
  time: 'time',
  'unix-time': 'timestamp_tz',
  'unix-time-ms': 'timestamp_tz',
};

function declaredTypes(stream: StreamDefinition): Map<string, ColumnType> {
  const properties = Object.entries(stream.schema?.properties ?? {});
  return new Map(properties.map(([name, property]) => [name, declaredType(property)]));
}

function declaredType({ type, format }: Property): ColumnType {
  const names = [type].flat();
  const kinds = names.filter((name) => name !== 'null').map((name): LogicalType => (name === 'object' ? 'json' : name));
  const widest = kinds.reduce<LogicalType | null>((known, kind) => widenType(known, kind), null) ?? 'string';
  const source_type = `${names.join('|')}${format ? `(${format})` : ''}`;
  return {
    type: format ? FORMATS[format] : widest,
    source_type,
    nullable: names.includes('null') || names.length === 1,
  };
}

async function inferTypes(api: Api, stream: StreamDefinition): Promise<Map<string, ColumnType>> {
  const { incremental, infer_records } = stream;
  const cursor = incremental?.type === 'time' ? incremental.cursor_field : null;
  const types = typesIn(await sample(api, stream, infer_records), cursor);
  return new Map(Array.from(types, ([name, type]) => [name, plain(type)]));
}

/** The narrowest types that hold the records. @param cursor a field whose texts are times if they can be */
export function typesIn(records: ApiRecord[], cursor: string | null): Map<string, LogicalType> {
  const types = new Map<string, LogicalType | null>();
  const times = new TypeInference();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      types.set(name, widenType(types.get(name) ?? null, jsonType(value)));
      if (name === cursor && (value === null || typeof value === 'string')) times.add(value);
    }
  }
  // Elsewhere texts stay texts: a later one might be no time, but the cursor has to be one.
  const time = times.result();
  if (cursor !== null && types.get(cursor) === 'string' && TIMES.has(time)) types.set(cursor, time);
  return new Map(Array.from(types, ([name, type]) => [name, type ?? 'string']));
}

async function sample(api: Api, stream: StreamDefinition, size: number): Promise<ApiRecord[]> {
  const records: ApiRecord[] = [];
  for (const slice of wholeOf(api, stream)) {
    for await (const page of readPages(api, stream, slice)) {
      records.push(...page.records);
      if (records.length >= size) return records.slice(0, size);
    }
  }
  return records;
}
