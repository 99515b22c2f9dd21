import type { Cell } from '../../contract/connector.ts';
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
import { literal } from '../connection/sql.ts';

/** Rows behind VALUES, in pieces of about `limit` characters, none of them empty. */
export function* encodeInserts(rows: Rows, shapes: readonly Shape[], limit: number): Generator<string> {
  let text = '';
  for (const row of rows) {
    text += `${text === '' ? '' : ','}(${row.map((cell, index) => cellLiteral(cell, shapes[index]!)).join(',')})`;
    if (text.length < limit) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

function cellLiteral(cell: Cell, shape: Shape): string {
  if (cell === null) return 'null';
  switch (shape) {
    case 'flag':
      return literal(flagText(cell));
    case 'whole':
      return literal(wholeText(cell));
    case 'label':
      return literal(labelText(cell));
    case 'instant':
      return literal(instantText(cell));
    case 'bytes':
      return `x'${bytesOfCell(cell).toString('hex')}'`;
    case 'bits':
      return `x'${packBits(bitsText(cell)).toString('hex')}'`;
    default:
      return literal(cell);
  }
}
