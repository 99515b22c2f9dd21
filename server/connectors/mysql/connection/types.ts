import type { LogicalType } from '../../contract/connector.ts';
import { isOrdered } from '../../kits/sql/streams.ts';
import { FORM, type Form } from './row-text.ts';

/** `Field.dialect` of MySQL's types. */
export const DIALECT = 'mysql';

const named = (names: string, type: LogicalType) => names.split(' ').map((name): [string, LogicalType] => [name, type]);

const BY_NAME = new Map<string, LogicalType>([
  ...named('tinyint smallint mediumint int integer bigint year', 'integer'),
  ...named('decimal double float', 'number'),
  ...named('date', 'date'),
  ...named('datetime', 'timestamp'),
  ...named('timestamp', 'timestamp_tz'),
  ...named('json', 'json'),
  ...named('binary varbinary tinyblob blob mediumblob longblob vector', 'binary'),
]);

const SPATIAL = /^(geometry|point|linestring|polygon|multi\w+|geom\w*collection)$/;

/** `decimal(10,2) unsigned` to `decimal`. */
export const bareName = (type: string) => /^\w+/.exec(type.toLowerCase())?.[0] ?? '';
export const isSpatial = (type: string) => SPATIAL.test(bareName(type));
export const isUnsigned = (type: string) => /\bunsigned\b/i.test(type);
/** The number in the parentheses: digits, characters, bytes or bits. */
export const sizeOf = (type: string) => Number(/\((\d+)/.exec(type)?.[1] ?? 1);
/** Whether a collation applies to the type. */
export const isCharacter = (type: string) => /^(char|varchar|tinytext|text|mediumtext|longtext)$/.test(bareName(type));

/**
 * Logical type of a COLUMN_TYPE. A TIME may be negative or longer than a day, so it is not a time of day. An unsigned
 * BIGINT exceeds 63 bits, so it is a number. A TINYINT(1) may be 2, so it is an integer.
 */
export function logicalType(type: string): LogicalType {
  const name = bareName(type);
  if (name === 'bigint' && isUnsigned(type)) return 'number';
  if (name === 'bit') return sizeOf(type) === 1 ? 'boolean' : 'string';
  return BY_NAME.get(name) ?? 'string';
}

/** Not FLOAT, which compares by more digits than it displays. */
export const isCursorType = (type: string) => isOrdered(logicalType(type)) && bareName(type) !== 'float';

/** How the bytes of an unmasked column are converted to a cell. */
export function formOf(type: LogicalType, keepZeroDates: boolean): Form {
  switch (type) {
    case 'binary':
      return FORM.binary;
    case 'date':
    case 'timestamp':
      return keepZeroDates ? FORM.plain : FORM.date;
    case 'timestamp_tz':
      return keepZeroDates ? FORM.any_instant : FORM.instant;
    case 'integer':
    case 'number':
    case 'boolean':
      return FORM.plain;
    default:
      return FORM.text;
  }
}
