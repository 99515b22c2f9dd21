import {
  bitsText,
  bytesOfCell,
  flagText,
  instantText,
  labelText,
  packBits,
  type Rows,
  type Shape,
  wholeText,
} from '../connection/cell-shapes.ts';

const NEEDS_ESCAPE = /[\\\n\t\0]/;
const ESCAPED: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\t': '\\t', '\0': '\\0' };
const NOT_ASCII = /[^\0-\x7f]/;

/** Rows as LOAD DATA takes them, and what character set to say. */
export interface LoadText {
  bytes: Buffer;
  charset: 'utf8mb4' | 'binary';
}

/** With a column of bytes all of the text is written byte by byte, since one file has but one character set. */
export function encodeLoadText(rows: Rows, shapes: readonly Shape[]): LoadText {
  const binary = shapes.some((shape) => shape === 'bytes' || shape === 'bits');
  let text = '';
  for (const row of rows) {
    for (let index = 0; index < row.length; index++) {
      if (index > 0) text += '\t';
      const cell = row[index]!;
      if (cell === null) text += '\\N';
      else {
        const field = fieldText(cell, shapes[index]!, binary);
        text += NEEDS_ESCAPE.test(field) ? field.replace(/[\\\n\t\0]/g, (found) => ESCAPED[found]!) : field;
      }
    }
    text += '\n';
  }
  return { bytes: Buffer.from(text, binary ? 'latin1' : 'utf8'), charset: binary ? 'binary' : 'utf8mb4' };
}

/** `binary`: a character stands for a byte. */
function fieldText(cell: string, shape: Shape, binary: boolean): string {
  switch (shape) {
    case 'flag':
      return flagText(cell);
    case 'instant':
      return instantText(cell);
    case 'whole':
      return wholeText(cell);
    case 'bits':
      return packBits(bitsText(cell)).toString('latin1');
    case 'bytes':
      return bytesOfCell(cell).toString('latin1');
    case 'label':
      return plainText(labelText(cell), binary);
    default:
      return plainText(cell, binary);
  }
}

const plainText = (text: string, binary: boolean) =>
  binary && NOT_ASCII.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text;
