import type { Cell, TargetColumn } from '../../../../contract/connector.ts';
import type { CsvDialect } from '../../settings/files.ts';
import type { TextEncoding } from '../text-output.ts';

/** NULL is the unquoted NULL text; the empty string is a pair of quotes. */
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
