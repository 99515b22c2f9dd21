import type { LogicalType, TargetColumn } from '../../contract/connector.ts';
import type { ServerVersion } from '../connection/server-version.ts';
import { bareName, DIALECT, isCharacter, isSpatial, sizeOf } from '../connection/types.ts';

/** Of an index, in bytes; a character may take four. */
const KEY_BYTES = 3072;
/** What a column of another kind may take of that. */
const FIXED_BYTES = 32;
/** Of a row without its long texts, in bytes: less than the server's 65,535. */
const ROW_BYTES = 50_000;
/** A DECIMAL has so many digits, and so many of them behind the point on every server. */
const DIGITS = 65;
const SCALE = 30;

const BY_LOGICAL: Record<LogicalType, string> = {
  string: 'longtext',
  integer: 'bigint',
  number: `decimal(${DIGITS},${SCALE})`,
  boolean: 'tinyint(1)',
  date: 'date',
  timestamp: 'datetime(6)',
  // Not TIMESTAMP, which begins in 1970 and may end in 2038.
  timestamp_tz: 'datetime(6)',
  time: 'time(6)',
  // Not JSON: MySQL's keeps numbers as doubles, MariaDB's takes 32 levels.
  json: 'longtext',
  array: 'longtext',
  binary: 'longblob',
};

const PLAIN =
  /^(tinyint|smallint|mediumint|int|bigint|decimal|float|double|bit|date|datetime|timestamp|time|year|char|varchar|tinytext|text|mediumtext|longtext|binary|varbinary|tinyblob|blob|mediumblob|longblob|enum|set)$/;

/** The types that a destination's columns are created with, as COLUMN_TYPE has them. */
export function columnTypes(
  columns: readonly TargetColumn[],
  { primaryKey, version }: { primaryKey: readonly string[]; version: ServerVersion },
): string[] {
  const types = columns.map((column) => columnType(column, version));
  const long = columns.filter(({ name }, index) => primaryKey.includes(name) && isVariable(types[index]!)).length;
  const room = long > 0 ? Math.floor((KEY_BYTES - FIXED_BYTES * (primaryKey.length - long)) / long) : 0;
  const keyed = types.map((type, index) => (primaryKey.includes(columns[index]!.name) ? keyType(type, room) : type));
  const bytes = keyed.reduce((sum, type) => sum + bytesOf(type), 0);
  if (bytes <= ROW_BYTES) return keyed;
  return keyed.map((type, index) =>
    primaryKey.includes(columns[index]!.name) || bytesOf(type) <= 1020
      ? type
      : isCharacter(type)
        ? 'longtext'
        : 'longblob',
  );
}

function columnType(column: TargetColumn, { flavor }: ServerVersion): string {
  const { source_type, dialect, type } = column;
  if (source_type === null) return BY_LOGICAL[type];
  if (dialect !== DIALECT) return type === 'number' ? numberType(source_type) : BY_LOGICAL[type];
  const name = bareName(source_type);
  // MariaDB knows these as well as the source did; what comes from MySQL fits, too.
  if (flavor === 'MariaDB' && /^(json|uuid|inet4|inet6)$/.test(name)) return name;
  const scale = Number(/,(\d+)\)/.exec(source_type)?.[1] ?? 0);
  if (name === 'decimal' && scale > SCALE && flavor === 'MySQL') return BY_LOGICAL.string;
  return PLAIN.test(name) && !isSpatial(source_type) ? source_type : BY_LOGICAL[type];
}

/** Others' names for a number with digits behind the point, as far as they say how many. */
function numberType(source_type: string): string {
  if (/^(double|float|real)/i.test(source_type)) return 'double';
  const [, precision, scale] = /^(?:numeric|decimal)\((\d+),\s*(\d+)\)$/i.exec(source_type) ?? [];
  // In PostgreSQL the scale can exceed the precision.
  const digits = Math.max(Number(precision), Number(scale));
  const fits = precision !== undefined && digits <= DIGITS && Number(scale) <= SCALE;
  return fits ? `decimal(${digits},${scale})` : BY_LOGICAL.number;
}

const isVariable = (type: string) => isCharacter(type) || /^(tiny|medium|long)?blob$|^(var)?binary/.test(type);

/** Long texts cannot be a key as a whole; longer values are then an error and not cut. */
function keyType(type: string, room: number): string {
  if (!isVariable(type)) return type;
  const unit = isCharacter(type) ? 4 : 1;
  const bounded = /^(var)?(char|binary)\(/.test(type);
  if (bounded && sizeOf(type) * unit <= room) return type;
  return `${unit === 4 ? 'varchar' : 'varbinary'}(${Math.floor(room / unit)})`;
}

function bytesOf(type: string): number {
  if (/^(var)?char\(/.test(type)) return sizeOf(type) * 4;
  return /^(var)?binary\(/.test(type) ? sizeOf(type) : 16;
}
