import type { LogicalType, TargetColumn } from '../../contract/connector.ts';
import { binarySql, momentSql } from '../../kits/duckdb/instance.ts';
import { isDate, isOrdered } from '../../kits/sql/streams.ts';

/** `Field.dialect` of DuckDB's types. */
export const DIALECT = 'duckdb';

const BY_NAME: Record<string, LogicalType> = {
  TINYINT: 'integer',
  SMALLINT: 'integer',
  INTEGER: 'integer',
  BIGINT: 'integer',
  UTINYINT: 'integer',
  USMALLINT: 'integer',
  UINTEGER: 'integer',
  UBIGINT: 'number',
  HUGEINT: 'number',
  UHUGEINT: 'number',
  BIGNUM: 'number',
  FLOAT: 'number',
  DOUBLE: 'number',
  DECIMAL: 'number',
  BOOLEAN: 'boolean',
  DATE: 'date',
  TIME: 'time',
  TIMESTAMP: 'timestamp',
  TIMESTAMP_S: 'timestamp',
  TIMESTAMP_MS: 'timestamp',
  'TIMESTAMP WITH TIME ZONE': 'timestamp_tz',
  JSON: 'json',
  BLOB: 'binary',
};

const isNested = (type: string) => /^(STRUCT|MAP|UNION)\(|\]$/.test(type);
const bareName = (type: string) => type.replace(/\(.*$/, '');

/** Nanoseconds, intervals, bits, enums, UUIDs are texts: nothing of them is lost. */
export function logicalType(type: string): LogicalType {
  if (type.endsWith(']')) return 'array';
  return isNested(type) ? 'json' : (BY_NAME[bareName(type)] ?? 'string');
}

export const isCursorType = (type: string) => isOrdered(logicalType(type));

/** SQL that gives the canonical text of a column. */
export function cellSql(column: string, type: string): string {
  const text = `CAST(${column} AS VARCHAR)`;
  if (type === 'BLOB') return `'\\x' || lower(hex(${column}))`;
  if (type === 'FLOAT' || type === 'DOUBLE') {
    return `CASE ${text} WHEN 'nan' THEN 'NaN' WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity' ELSE ${text} END`;
  }
  if (isDate(logicalType(type))) {
    return `CASE WHEN year(${column}) < 1 THEN replace(${text}, ' (BC)', '') || ' BC' ELSE ${text} END`;
  }
  return isNested(type) ? `CAST(to_json(${column}) AS VARCHAR)` : text;
}

/** SQL that makes a value of `type` out of a cell. */
export function valueSql(cell: string, type: string): string {
  if (type === 'VARCHAR') return cell;
  if (type === 'BLOB') return binarySql(cell);
  if (isNested(type)) return `CAST(CAST(${cell} AS JSON) AS ${type})`;
  // DuckDB would round a number with a fraction.
  if (/INT(EGER)?$/.test(type)) return `CAST(translate(${cell}, '.eE', 'xxx') AS ${type})`;
  if (!isDate(logicalType(type))) return `CAST(${cell} AS ${type})`;
  return momentSql(cell, type);
}

const BY_LOGICAL: Record<LogicalType, string> = {
  string: 'VARCHAR',
  integer: 'BIGINT',
  // Without a declared precision: every number type of DuckDB would cut some.
  number: 'VARCHAR',
  boolean: 'BOOLEAN',
  date: 'DATE',
  timestamp: 'TIMESTAMP',
  timestamp_tz: 'TIMESTAMP WITH TIME ZONE',
  time: 'TIME',
  json: 'JSON',
  array: 'JSON',
  binary: 'BLOB',
};

/** The type that a destination's column is created with, as duckdb_columns() writes it. */
export function columnType({ type, source_type, dialect }: TargetColumn): string {
  const declared = source_type ?? '';
  // Of lists and the like only the JSON comes over.
  if (dialect === DIALECT && declared && !isNested(declared)) return declared;
  if (type === 'number') return numberType(declared);
  // An array of PostgreSQL comes as `{…}`, which is no JSON.
  if (type === 'array' && dialect === 'postgres') return 'VARCHAR';
  return type === 'string' && /^uuid$/i.test(declared) && dialect === 'postgres' ? 'UUID' : BY_LOGICAL[type];
}

function numberType(declared: string): string {
  const [, precision, scale] = /^(?:numeric|decimal)\((\d+), ?(\d+)\)/i.exec(declared) ?? [];
  if (precision !== undefined && Number(precision) <= 38 && Number(scale) <= Number(precision)) {
    return `DECIMAL(${precision},${scale})`;
  }
  if (/^(?:real|float4|float)\b/i.test(declared)) return 'FLOAT';
  if (/^(?:double|float8)/i.test(declared)) return 'DOUBLE';
  return /^bigint unsigned/i.test(declared) ? 'UBIGINT' : BY_LOGICAL.number;
}
