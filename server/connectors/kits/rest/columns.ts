import type { Field, LogicalType, StreamSchema } from '../../contract/connector.ts';
import { TypeInference } from '../../cells/normalizers.ts';
import { jsonType, widenType } from '../../cells/json-cells.ts';
import type { ApiRecord } from './records.ts';

export interface InferredColumn {
  type: LogicalType;
  source_type: string | null;
  nullable: boolean;
}

export const inferredColumn = (type: LogicalType): InferredColumn => ({ type, source_type: null, nullable: true });

export interface StreamDescription {
  name: string;
  description: string | null;
  columns: ReadonlyMap<string, InferredColumn>;
  /** Columns of the primary key; empty: none. */
  key: string[];
  /** The column of the incremental cursor; null: full refresh only. */
  cursor: string | null;
  supports_date_window: boolean;
}

/** A stream as the catalog stores it. Key and cursor columns that `columns` lacks are added as text. */
export function streamSchema({ columns, key, cursor, ...stream }: StreamDescription): StreamSchema {
  const all = new Map(columns);
  for (const name of [...key, ...(cursor === null ? [] : [cursor])])
    all.set(name, all.get(name) ?? inferredColumn('string'));
  const fields = Array.from(
    all,
    ([name, { type, source_type, nullable }]): Field => ({
      path: [name],
      type,
      source_type,
      dialect: null,
      nullable: nullable && !key.includes(name),
      is_primary_key: key.includes(name),
      is_cursor_candidate: name === cursor,
    }),
  );
  return {
    namespace: null,
    name: stream.name,
    description: stream.description,
    fields,
    supported_sync_modes: cursor === null ? ['full_refresh'] : ['full_refresh', 'incremental'],
    source_defined_cursor: cursor !== null,
    default_cursor_field: cursor === null ? null : [cursor],
    source_defined_primary_key: key.length > 0 ? key.map((name) => [name]) : null,
    is_resumable: cursor !== null,
    supports_date_window: stream.supports_date_window,
    suggested: true,
  };
}

const TIMES: ReadonlySet<LogicalType> = new Set(['date', 'timestamp', 'timestamp_tz']);

/** The narrowest types that hold the records. @param cursor a column whose text values become times where possible */
export function inferTypes(records: ApiRecord[], cursor: string | null): Map<string, LogicalType> {
  const types = new Map<string, LogicalType | null>();
  const times = new TypeInference();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      types.set(name, widenType(types.get(name) ?? null, jsonType(value)));
      if (name === cursor && (value === null || typeof value === 'string')) times.add(value);
    }
  }
  // Other columns stay text, since a later value may not be a time. The cursor has to be one.
  const time = times.result();
  if (cursor !== null && types.get(cursor) === 'string' && TIMES.has(time)) types.set(cursor, time);
  return new Map(Array.from(types, ([name, type]) => [name, type ?? 'string']));
}
