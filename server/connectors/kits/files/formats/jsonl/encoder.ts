import type { Cell, TargetColumn } from '../../../../contract/connector.ts';
import type { TextEncoding } from '../text-output.ts';

/** One object per line with every column. Numbers and JSON are copied as text and keep all their digits. */
export function jsonlEncoder(columns: TargetColumn[]): TextEncoding {
  const writers = columns.map((column, at) => {
    const key = `${at === 0 ? '{' : ','}${JSON.stringify(column.name)}:`;
    const value = valueWriter(column);
    return (cell: Cell) => key + (cell === null ? 'null' : value(cell));
  });
  const line = (row: Cell[]) => `${writers.map((write, at) => write(row[at] as Cell)).join('')}}\n`;
  return { head: '', rows: (rows) => rows.map(line).join('') };
}

/** PostgreSQL also has NaN and Infinity, which JSON lacks. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function valueWriter({ type }: TargetColumn): (cell: string) => string {
  if (type === 'integer' || type === 'number') return (cell) => (JSON_NUMBER.test(cell) ? cell : JSON.stringify(cell));
  if (type === 'boolean') return (cell) => cell;
  if (type === 'json') return (cell) => cell.replaceAll(/[\r\n]/g, ' ');
  // PostgreSQL's own arrays have the form {…}, which is not JSON.
  if (type === 'array')
    return (cell) => (cell.startsWith('[') ? cell.replaceAll(/[\r\n]/g, ' ') : JSON.stringify(cell));
  return (cell) => JSON.stringify(cell);
}
