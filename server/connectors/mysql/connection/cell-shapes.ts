import type { Cell, TargetColumn } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { instantText as textOfInstant, parseTime } from '../../cells/timestamp-text.ts';
import { bareName, isCharacter } from './types.ts';

/** Suffix of the type of a column whose text is not utf8mb4. */
export const OTHER_CHARSET = ' character set ';

/**
 * How a cell is converted for its column. `parsed`: text that the server converts; `label`: a value of an ENUM or SET
 * without numeric labels.
 */
export type Shape = 'text' | 'parsed' | 'whole' | 'label' | 'flag' | 'bits' | 'instant' | 'bytes';

/** `type`: COLUMN_TYPE of the destination's column. Text columns accept cells unchanged. */
export function shapeOf(column: Pick<TargetColumn, 'type'>, type: string): Shape {
  if (type.includes(OTHER_CHARSET)) return 'parsed';
  if (isCharacter(type) || type.startsWith('json')) return 'text';
  if (/^(enum|set)/.test(type)) return /'\d+'/.test(type) ? 'text' : 'label';
  // For these types the server reads bytes as the value, not as its text.
  if (/^(uuid|inet4|inet6)$/.test(type)) return 'parsed';
  if (bareName(type) === 'bit') return 'bits';
  if (column.type === 'boolean') return 'flag';
  if (bareName(type).endsWith('int')) return 'whole';
  if (column.type === 'timestamp_tz') return 'instant';
  return column.type === 'binary' ? 'bytes' : 'text';
}

/** Rejects what the server would round silently. @throws DataError */
export function wholeText(cell: string): string {
  if (/[.eE]/.test(cell)) throw new DataError('invalid_value', `"${cell.slice(0, 100)}" is not an integer`);
  return cell;
}

/** Rejects what the server would read as the index of a label or as a bitmap of labels. @throws DataError */
export function labelText(cell: string): string {
  if (/^\s*\d+\s*$/.test(cell))
    throw new DataError('invalid_value', `"${cell.slice(0, 100)}" is not one of the labels`);
  return cell;
}

/** Other cells are whole numbers, or refused. */
export const flagText = (cell: string) => (cell === 'true' ? '1' : cell === 'false' ? '0' : wholeText(cell));

/** The same moment in UTC, without an offset. */
export function instantText(cell: string): string {
  if (cell.endsWith('+00')) return cell.slice(0, -3);
  const at = parseTime(cell)?.at;
  return at === undefined || typeof at === 'string' ? cell : textOfInstant(at, '');
}

/** `true`, `false` or binary digits to binary digits. */
export const bitsText = (cell: string) => flagText(cell);

/** Decodes `\\x…`; other text becomes its UTF-8 bytes. @throws DataError */
export function bytesOfCell(cell: string): Buffer {
  if (!cell.startsWith('\\x')) return Buffer.from(cell, 'utf8');
  const bytes = Buffer.from(cell.slice(2), 'hex');
  // Buffer.from stops silently at a character that is not hexadecimal.
  if (bytes.length * 2 === cell.length - 2) return bytes;
  throw new DataError('invalid_value', `"${cell.slice(0, 100)}" is not valid hexadecimal`);
}

/** Binary digits as bytes, highest first. The server would store any other text as raw bytes. @throws DataError */
export function packBits(digits: string): Buffer {
  if (!/^[01]+$/.test(digits)) throw new DataError('invalid_value', `"${digits.slice(0, 100)}" is not a bit string`);
  const padded = digits.padStart(Math.ceil(digits.length / 8) * 8, '0');
  return Buffer.from(padded.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
}

export type Rows = readonly Cell[][];
