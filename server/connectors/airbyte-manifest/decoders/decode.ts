import { DataError } from '../../contract/errors.ts';
import { CsvSyntaxError, parseCsv } from '../../kits/files/formats/csv/parser.ts';
import { parseExactly } from '../../cells/json-line.ts';
import type { Answer } from '../../kits/rest/send.ts';
import { parseAnswer } from '../../kits/rest/prefetch-pages.ts';
import type { Decoder } from '../components/request-components.ts';

export interface Decoded {
  /** What the extractor looks into, one after the other. */
  bodies: unknown[];
  /** What templates see as the response. */
  response: unknown;
}

/** An answer as its decoder reads it. Gzip is undone before, by its first bytes. @throws DataError naming the place */
export function decoded(decoder: Decoder | null | undefined, stream: string, answer: Answer): Decoded {
  const place = `${stream}: the answer of ${answer.url.host}${answer.url.pathname}`;
  switch (decoder?.type) {
    case 'GzipDecoder':
      return decoded(decoder.decoder, stream, answer);
    case 'JsonlDecoder':
      return {
        bodies: linesOf(answer.text).map((line, at) => jsonLine(line, `${place}, line ${at + 1}`)),
        response: {},
      };
    case 'IterableDecoder':
      return { bodies: linesOf(answer.text).map((record) => ({ record })), response: {} };
    case 'CsvDecoder':
      return { bodies: csvRecords(decoder, answer.text, place), response: {} };
    default: {
      const json = parseAnswer(stream, answer);
      const bodies = Array.isArray(json) ? json : [json];
      return { bodies, response: bodies[0] ?? {} };
    }
  }
}

const linesOf = (text: string) => text.split(/\r?\n/).filter((line) => line.trim() !== '');

function jsonLine(line: string, place: string): unknown {
  try {
    return parseExactly(line);
  } catch (error) {
    throw new DataError('malformed_json', `${place} is no JSON`, { cause: error });
  }
}

/** Records by the names of the first line; cells stay text, what a short line lacks is NULL. */
function csvRecords(
  { delimiter, set_values_to_none: none }: Extract<Decoder, { type: 'CsvDecoder' }>,
  text: string,
  place: string,
): Record<string, unknown>[] {
  const dialect = { delimiter: delimiter.replace('\\t', '\t'), quote: '"', header: true, null_value: '\u0000' };
  const whole = `${text.replace(/^\uFEFF/, '').replace(/\r?\n$/, '')}\n`;
  try {
    const { rows, rest } = parseCsv(whole, dialect, whole.includes('\r\n'));
    if (rest < whole.length) throw new DataError('malformed_csv', `${place}: a quote is never closed`);
    const [names = [], ...records] = rows.filter((row) => row.length > 1 || row[0] !== '');
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
