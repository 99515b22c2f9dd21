import type { Cell } from '../../../../contract/connector.ts';
import type { CsvDialect } from '../../settings/files.ts';

const NEWLINE = 10;
const RETURN = 13;
/** Databases and spreadsheets have fewer columns. Without a limit, a line of delimiters fills the memory. */
const MAX_FIELDS = 100_000;

export interface ParsedCsv {
  rows: Cell[][];
  /** Offset of the first unfinished record. */
  rest: number;
  /** Number of line ends within quotes. */
  inner_lines: number;
}

/** A syntax error after `lines` line ends of the text, in the cell with the index `cell` of its record. */
export class CsvSyntaxError extends Error {
  constructor(
    message: string,
    readonly lines: number,
    readonly cell: number,
  ) {
    super(message);
  }
}

/**
 * Parses all whole records of a text. Outside quotes LF, CRLF and CR each end a record, in any mix. An unquoted cell
 * equal to `null_value` is null. The results of indexOf are kept until they are passed, so every character is searched
 * once.
 */
export function parseCsv(text: string, dialect: CsvDialect): ParsedCsv {
  const { delimiter, quote, null_value } = dialect;
  const [quoteCode, delimiterCode] = [quote.charCodeAt(0), delimiter.charCodeAt(0)];
  const rows: Cell[][] = [];
  const { length } = text;
  let row: Cell[] = [];
  let start = 0;
  let at = 0;
  let innerLines = 0;
  let recordLines = 0;
  let nextDelimiter = -1;
  let nextNewline = -1;
  let nextReturn = -1;
  while (at < length) {
    if (nextNewline < at) nextNewline = indexOrEnd(text, '\n', at);
    if (nextReturn < at) nextReturn = indexOrEnd(text, '\r', at);
    const lineEnd = Math.min(nextNewline, nextReturn);
    if (lineEnd >= length) break;
    let end: number;
    if (text.charCodeAt(at) === quoteCode) {
      const quoted = quotedCell(text, at, quote);
      if (quoted === null) break;
      row.push(quoted.value);
      if (lineEnd < quoted.end) recordLines += linesIn(quoted.value);
      end = quoted.end;
    } else {
      if (nextDelimiter < at) nextDelimiter = indexOrEnd(text, delimiter, at);
      end = Math.min(lineEnd, nextDelimiter);
      const value = text.slice(at, end);
      row.push(value === null_value ? null : value);
    }
    const code = text.charCodeAt(end);
    if (row.length > MAX_FIELDS) throw tooManyFields(linesIn(text.slice(0, at)));
    const isReturn = code === RETURN;
    // The next chunk may begin with the LF of a CRLF.
    if (end >= length || (isReturn && end + 1 >= length)) break;
    const ended = isReturn || code === NEWLINE;
    if (!ended && code !== delimiterCode) {
      throw new CsvSyntaxError('there is text after the closing quote', linesIn(text.slice(0, end)), row.length - 1);
    }
    at = isReturn && text.charCodeAt(end + 1) === NEWLINE ? end + 2 : end + 1;
    if (ended) {
      rows.push(row);
      row = [];
      start = at;
      innerLines += recordLines;
      recordLines = 0;
    }
  }
  return { rows, rest: start, inner_lines: innerLines };
}

const tooManyFields = (lines: number) =>
  new CsvSyntaxError(
    `a record has more than ${MAX_FIELDS} fields. Check the delimiter and the line ends`,
    lines,
    MAX_FIELDS,
  );

function indexOrEnd(text: string, wanted: string, from: number): number {
  const found = text.indexOf(wanted, from);
  return found < 0 ? text.length : found;
}

/** Number of line ends in a text. */
export function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/** Null if the text does not contain the closing quote and the character after it yet. */
function quotedCell(text: string, at: number, quote: string): { value: string; end: number } | null {
  let value = '';
  let from = at + 1;
  while (true) {
    const end = text.indexOf(quote, from);
    if (end < 0 || end + 1 >= text.length) return null;
    if (!text.startsWith(quote, end + 1)) return { value: value + text.slice(from, end), end: end + 1 };
    value += text.slice(from, end + 1);
    from = end + 2;
  }
}
