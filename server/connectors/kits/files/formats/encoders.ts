import type { Cell, TargetColumn } from '../../../contract/connector.ts';
import type { CsvDialect } from '../../../file/settings.ts';

export interface TextEncoding {
  /** What stands in front of the rows. */
  head: string;
  rows(rows: Cell[][]): string;
}

/** Null is the unquoted null value, the empty string is two quotes. */
export function csvEncoder(columns: TargetColumn[], dialect: CsvDialect): TextEncoding {
  const { delimiter, quote, header, null_value } = dialect;
  const special = new RegExp(`[${[delimiter, quote].map(escapeInClass).join('')}\\r\\n]`);
  const quoted = (text: string) => quote + text.replaceAll(quote, quote + quote) + quote;
  const cellText = (cell: Cell) => {
    if (cell === null) return null_value;
    return cell === '' || cell === null_value || special.test(cell) ? quoted(cell) : cell;
  };
  const line = (row: Cell[]) => {
    let text = cellText(row[0] as Cell);
    for (let at = 1; at < row.length; at++) text += delimiter + cellText(row[at] as Cell);
    return `${text}\n`;
  };
  return {
    head: header ? line(columns.map(({ name }) => name)) : '',
    rows: (rows) => rows.map(line).join(''),
  };
}

const escapeInClass = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One object a line, every column in it. Numbers and JSON stand as they are, with all their digits. */
export function jsonlEncoder(columns: TargetColumn[]): TextEncoding {
  const writers = columns.map((column, at) => {
    const key = `${at === 0 ? '{' : ','}${JSON.stringify(column.name)}:`;
    const value = valueWriter(column);
    return (cell: Cell) => key + (cell === null ? 'null' : value(cell));
  });
  const line = (row: Cell[]) => `${writers.map((write, at) => write(row[at] as Cell)).join('')}}\n`;
  return { head: '', rows: (rows) => rows.map(line).join('') };
}

/** As in JSON: PostgreSQL also has NaN, Infinity. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function valueWriter({ type }: TargetColumn): (cell: string) => string {
  if (type === 'integer' || type === 'number') return (cell) => (JSON_NUMBER.test(cell) ? cell : JSON.stringify(cell));
  if (type === 'boolean') return (cell) => cell;
  if (type === 'json') return (cell) => cell.replaceAll(/[\r\n]/g, ' ');
  // PostgreSQL's own arrays come as {…}, which may be no JSON.
  if (type === 'array')
    return (cell) => (cell.startsWith('[') ? cell.replaceAll(/[\r\n]/g, ' ') : JSON.stringify(cell));
  return (cell) => JSON.stringify(cell);
}
