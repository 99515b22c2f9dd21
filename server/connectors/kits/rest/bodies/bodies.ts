import { DataError } from '../../../contract/errors.ts';
import { CsvSyntaxError, linesIn, parseCsv } from '../../files/formats/csv/parser.ts';
import { parseExactly } from '../../../cells/json-line.ts';
import { JSON_LIMITS, MAX_VALUES, tooComplexAt } from '../../../cells/json-limits.ts';
import { parseXml } from '../../xml/tree.ts';

/** One JSON value a line; empty lines are skipped. @throws DataError naming the line */
export function jsonLines(text: string, place: string): unknown[] {
  const complex = tooComplexAt(text);
  if (complex === null) return linesOf(text).map((line, at) => jsonLine(line, `${place}, line ${at + 1}`));
  const line = linesIn(text.slice(0, complex)) + 1;
  throw new DataError(
    'json_limit_exceeded',
    `${place}, line ${line}: more than ${JSON_LIMITS} in one response. Request smaller pages`,
  );
}

/** @throws DataError naming the line */
export function xmlOf(text: string, place: string): unknown {
  try {
    return parseXml(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new DataError('malformed_xml', `${place} is not well-formed XML: ${why}`, { cause: error });
  }
}

export const linesOf = (text: string) => text.split(/\r?\n/).filter((line) => line.trim() !== '');

function jsonLine(line: string, place: string): unknown {
  try {
    return parseExactly(line);
  } catch (error) {
    throw new DataError('malformed_json', `${place} is not valid JSON`, { cause: error });
  }
}

/** Records named by the header line. Values stay text; fields missing at the end of a line are NULL. */
export function csvRecords(
  { delimiter, none }: { delimiter: string; none?: readonly string[] | null | undefined },
  text: string,
  place: string,
): Record<string, unknown>[] {
  const dialect = { delimiter: delimiter.replace('\\t', '\t'), quote: '"', header: true, null_value: '\u0000' };
  const whole = `${text.replace(/^\uFEFF/, '').replace(/\r?\n$/, '')}\n`;
  try {
    const { rows, rest } = parseCsv(whole, dialect);
    if (rest < whole.length) throw new DataError('malformed_csv', `${place}: a quoted field is not closed`);
    const [names = [], ...records] = rows.filter((row) => row.length > 1 || row[0] !== '');
    if (names.length * records.length > MAX_VALUES) {
      throw new DataError('csv_limit_exceeded', `${place} has more than ${MAX_VALUES} values. Request smaller pages`);
    }
    return records.map((row) =>
      Object.fromEntries(
        names.map((name, at) => {
          const cell = row[at] ?? null;
          return [String(name), cell !== null && none?.includes(cell) ? null : cell];
        }),
      ),
    );
  } catch (error) {
    if (!(error instanceof CsvSyntaxError)) throw error;
    throw new DataError('malformed_csv', `${place}, line ${error.lines + 1}: ${error.message}`, { cause: error });
  }
}
