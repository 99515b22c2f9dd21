import type { Cell, TargetColumn } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import { bareName, isCharacter } from './types.ts';

/** Behind the type of a column whose texts are not utf8mb4. */
export const OTHER_CHARSET = ' character set ';

/**
 * What has to be made of a cell for the column that takes it. `parsed`: text that the server has to convert; `label`: one
 * of an ENUM or SET that has no numbers among them.
 */
export type Shape = 'text' | 'parsed' | 'whole' | 'label' | 'flag' | 'bits' | 'instant' | 'bytes';

/** `type`: of the destination's column, as COLUMN_TYPE has it. Columns of text take cells as they are. */
export function shapeOf(column: Pick<TargetColumn, 'type'>, type: string): Shape {
  if (type.includes(OTHER_CHARSET)) return 'parsed';
  if (isCharacter(type) || type.startsWith('json')) return 'text';
  if (/^(enum|set)/.test(type)) return /'\d+'/.test(type) ? 'text' : 'label';
  // Of these the server takes bytes for the value itself and not for its text.
  if (/^(uuid|inet4|inet6)$/.test(type)) return 'parsed';
  if (bareName(type) === 'bit') return 'bits';
  if (column.type === 'boolean') return 'flag';
  if (bareName(type).endsWith('int')) return 'whole';
  if (column.type === 'timestamp_tz') return 'instant';
  return column.type === 'binary' ? 'bytes' : 'text';
}

/** What the server would round without a word. @throws DataError */
export function wholeText(cell: string): string {
  if (/[.eE]/.test(cell)) throw new DataError('invalid_value', `"${cell.slice(0, 100)}" is no whole number`);
  return cell;
}

/** What the server would take for the place of a label, or for several at once. @throws DataError */
export function labelText(cell: string): string {
  if (/^\s*\d+\s*$/.test(cell)) throw new DataError('invalid_value', `"${cell.slice(0, 100)}" is none of the labels`);
  return cell;
}

export const flagText = (cell: string) => (cell === 'true' ? '1' : cell === 'false' ? '0' : cell);

/** The same moment in UTC, without an offset. */
export function instantText(cell: string): string {
  if (cell.endsWith('+00')) return cell.slice(0, -3);
  const micros = microsOf(cell);
  return Number.isNaN(micros) ? cell : timestampText(micros).slice(0, -3);
}

/** `true`, `false` or binary digits to binary digits. */
export const bitsText = (cell: string) => flagText(cell);

/** What a text holds of bytes: `\\x…`, or else its UTF-8. @throws DataError */
export function bytesOfCell(cell: string): Buffer {
  if (!cell.startsWith('\\x')) return Buffer.from(cell, 'utf8');
  const bytes = Buffer.from(cell.slice(2), 'hex');
  // What is no hexadecimal digit ends it without a word.
  if (bytes.length * 2 === cell.length - 2) return bytes;
  throw new DataError('invalid_value', `"${cell.slice(0, 100)}" is no hexadecimal form of bytes`);
}

/** Binary digits as bytes, highest first. Anything else the server would take for the bytes. @throws DataError */
export function packBits(digits: string): Buffer {
  if (!/^[01]+$/.test(digits)) throw new DataError('invalid_value', `"${digits.slice(0, 100)}" is no row of bits`);
  const padded = digits.padStart(Math.ceil(digits.length / 8) * 8, '0');
  return Buffer.from(padded.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
}

export type Rows = readonly Cell[][];
