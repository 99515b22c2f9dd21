/** A column of a result, as the driver has it. */
export interface ResultColumn {
  name: string;
  columnType: number;
  /** In bytes; of numbers in characters, of bits in bits. */
  columnLength: number;
  decimals: number;
  flags: number;
  characterSet: number;
  /** MariaDB's own types and JSON, which go as texts. */
  extendedTypeName?: string;
  extendedFormat?: string;
}

const UNSIGNED = 0x20;
const ENUM = 0x100;
const SET = 0x800;
const BINARY_CHARSET = 63;
const GEOMETRY = 255;
/** Fractions of a second have so many digits at most; more stands for none declared. */
const FRACTION = 6;

const INTEGERS: Record<number, string> = { 1: 'tinyint', 2: 'smallint', 3: 'int', 8: 'bigint', 9: 'mediumint' };
const TIMES: Record<number, string> = { 7: 'timestamp', 11: 'time', 12: 'datetime' };
const PLAIN: Record<number, string> = {
  4: 'float',
  5: 'double',
  10: 'date',
  13: 'year',
  14: 'date',
  242: 'vector',
  245: 'json',
  [GEOMETRY]: 'geometry',
};

/** The type of a result's column, as COLUMN_TYPE would have it. */
export function resultType(column: ResultColumn): string {
  const { columnType, columnLength, decimals, flags, characterSet, extendedTypeName, extendedFormat } = column;
  if (extendedFormat === 'json') return 'json';
  if (extendedTypeName && columnType !== GEOMETRY) return extendedTypeName;
  const unsigned = (flags & UNSIGNED) > 0;
  const integer = INTEGERS[columnType];
  // A TINYINT(1) is what booleans are made of.
  const size = columnType === 1 && columnLength === 1 ? '(1)' : '';
  if (integer) return `${integer}${size}${unsigned ? ' unsigned' : ''}`;
  const time = TIMES[columnType];
  if (time) return decimals > 0 && decimals <= FRACTION ? `${time}(${decimals})` : time;
  if (columnType === 16) return `bit(${columnLength})`;
  if (columnType === 0 || columnType === 246) {
    const digits = columnLength - (decimals > 0 ? 1 : 0) - (unsigned ? 0 : 1);
    return `decimal(${Math.max(digits, decimals, 1)},${decimals})${unsigned ? ' unsigned' : ''}`;
  }
  // Nothing but NULL has no length at all. How long a text or bytes may be is as the query happens to be: the same
  // stream may bring longer ones tomorrow.
  const isText = characterSet !== BINARY_CHARSET || columnLength === 0 || (flags & (ENUM | SET)) > 0;
  return PLAIN[columnType] ?? (isText ? 'longtext' : 'longblob');
}
