import type { Field, LogicalType, TargetColumn } from '../../contract/connector.ts';

/** `Field.dialect` of PostgreSQL's types. */
export const DIALECT = 'postgres';

/** Types built into every PostgreSQL, with their logical type. All have a binary form for COPY. */
const BUILTIN: Record<string, LogicalType> = {
  smallint: 'integer',
  integer: 'integer',
  bigint: 'integer',
  oid: 'integer',
  numeric: 'number',
  real: 'number',
  'double precision': 'number',
  boolean: 'boolean',
  date: 'date',
  'timestamp without time zone': 'timestamp',
  'timestamp with time zone': 'timestamp_tz',
  'time without time zone': 'time',
  'time with time zone': 'string',
  json: 'json',
  jsonb: 'json',
  bytea: 'binary',
  ...Object.fromEntries(
    [
      'text',
      'character varying',
      'character',
      '"char"',
      'name',
      'uuid',
      'interval',
      'money',
      'xml',
      'inet',
      'cidr',
      'macaddr',
      'macaddr8',
      'bit',
      'bit varying',
      'point',
      'line',
      'lseg',
      'box',
      'path',
      'polygon',
      'circle',
      'tsvector',
      'tsquery',
      'pg_lsn',
      'int4range',
      'int8range',
      'numrange',
      'daterange',
      'tsrange',
      'tstzrange',
    ].map((name) => [name, 'string' as const]),
  ),
};

/** `timestamp(3) without time zone[]` to `timestamp without time zone`; `interval day to second(3)` to `interval`. */
const bareName = (type: string) =>
  type
    .replace(/\[\]$/, '')
    .replace(/\([^)]*\)/, '')
    .replace(/^interval .*/, 'interval')
    .trim();

/** Whether a server without extensions or custom types has the type. `type` as format_type() prints it. */
export const isBuiltin = (type: string) => Object.hasOwn(BUILTIN, bareName(type));

/** Logical type of a type as format_type() prints it. For a domain, pass its base type. */
export function logicalType(type: string): LogicalType {
  if (type.endsWith('[]')) return 'array';
  return BUILTIN[bareName(type)] ?? 'string';
}

/** Whether the column can be copied in PostgreSQL's binary form, which allows no conversion. */
export const hasPortableBinary = (field: Field) =>
  field.dialect === DIALECT && field.source_type !== null && isBuiltin(field.source_type);

const BY_LOGICAL: Record<LogicalType, string> = {
  string: 'text',
  integer: 'bigint',
  number: 'numeric',
  boolean: 'boolean',
  date: 'date',
  timestamp: 'timestamp without time zone',
  timestamp_tz: 'timestamp with time zone',
  time: 'time without time zone',
  json: 'jsonb',
  array: 'jsonb',
  binary: 'bytea',
};

/** The type a destination's column is created with, as format_type() would print it. */
export function columnType({ type, source_type, dialect }: TargetColumn): string {
  if (dialect !== DIALECT || source_type === null) return BY_LOGICAL[type];
  if (isBuiltin(source_type)) return source_type;
  // An array of an unknown type arrives as `{…}`, which is not JSON.
  return type === 'array' ? 'text' : BY_LOGICAL[type];
}
