import type { Cell, TargetColumn } from '../define.ts';
import { microsOf, timestampText } from '../timestamp-text.ts';
import { bareName, isCharacter } from './types.ts';

/** Behind the type of a column whose texts are not utf8mb4. */
export const OTHER_CHARSET = ' character set ';

/** What has to be made of a cell for the column that takes it. `parsed`: text that the server has to convert. */
export type Shape = 'text' | 'parsed' | 'flag' | 'bits' | 'instant' | 'bytes';

/** `type`: of the destination's column, as COLUMN_TYPE has it. Columns of text take cells as they are. */
export function shapeOf(column: Pick<TargetColumn, 'type'>, type: string): Shape {
  if (type.includes(OTHER_CHARSET)) return 'parsed';
  if (isCharacter(type) || /^(json|enum|set)/.test(type)) return 'text';
  // Of these the server takes bytes for the value itself and not for its text.
  if (/^(uuid|inet4|inet6)$/.test(type)) return 'parsed';
  if (bareName(type) === 'bit') return 'bits';
  if (column.type === 'boolean') return 'flag';
  if (column.type === 'timestamp_tz') return 'instant';
  return column.type === 'binary' ? 'bytes' : 'text';
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

/** What a text holds of bytes: `\x…`, or else its UTF-8. */
export const bytesOfCell = (cell: string) =>
  cell.startsWith('\\x') ? Buffer.from(cell.slice(2), 'hex') : Buffer.from(cell, 'utf8');

/** Binary digits as bytes, highest first. */
export function packBits(digits: string): Buffer {
  if (!/^[01]+$/.test(digits)) return Buffer.from(digits, 'utf8');
  const padded = digits.padStart(Math.ceil(digits.length / 8) * 8, '0');
  return Buffer.from(padded.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
}

export type Rows = readonly Cell[][];
