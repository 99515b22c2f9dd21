import { DataError } from '../../contract/errors.ts';
import { CsvSyntaxError, linesIn, parseCsv } from '../../kits/files/formats/csv/parser.ts';
import { parseExactly } from '../../cells/json-line.ts';
import { JSON_LIMITS, MAX_VALUES, tooComplexAt } from '../../cells/json-limits.ts';
import { parseResponse } from '../../kits/rest/records.ts';
import { parseXml } from '../../kits/rest/xml.ts';
import type { HttpResponse } from '../../kits/rest/send.ts';
import type { Decoder } from '../components/request-components.ts';

export interface Decoded {
  /** The extractor looks into them one after the other. */
  bodies: unknown[];
  /** What templates see as the response. */
  response: unknown;
}

/** Decodes a response. Gzip is already unpacked: it is detected by its first bytes. @throws DataError naming the line */
export function decode(decoder: Decoder | null | undefined, stream: string, http: HttpResponse): Decoded {
  const place = `${stream}: the response of ${http.url.host}${http.url.pathname}`;
  switch (decoder?.type) {
    case 'GzipDecoder':
      return decode(decoder.decoder, stream, http);
    case 'JsonlDecoder':
      return { bodies: jsonLines(http.text, place), response: {} };
    case 'IterableDecoder':
      return { bodies: linesOf(http.text).map((record) => ({ record })), response: {} };
    case 'XmlDecoder': {
      const xml = http.text.trim() === '' ? {} : xmlOf(http.text, place);
      return { bodies: [xml], response: xml };
    }
    case 'CsvDecoder':
      return { bodies: csvRecords(decoder, http.text, place), response: {} };
    default: {
      const json = parseResponse(stream, http);
      const bodies = Array.isArray(json) ? json : [json];
      return { bodies, response: bodies[0] ?? {} };
    }
  }
}

function jsonLines(text: string, place: string): unknown[] {
  const complex = tooComplexAt(text);
  if (complex === null) return linesOf(text).map((line, at) => jsonLine(line, `${place}, line ${at + 1}`));
  const line = linesIn(text.slice(0, complex)) + 1;
  throw new DataError(
    'json_limit_exceeded',
    `${place}, line ${line}: more than ${JSON_LIMITS} in one response. Request smaller pages`,
  );
}

function xmlOf(text: string, place: string): unknown {
  try {
    return parseXml(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new DataError('malformed_xml', `${place} is not well-formed XML: ${why}`, { cause: error });
  }
}

const linesOf = (text: string) => text.split(/\r?\n/).filter((line) => line.trim() !== '');

function jsonLine(line: string, place: string): unknown {
  try {
    return parseExactly(line);
  } catch (error) {
    throw new DataError('malformed_json', `${place} is not valid JSON`, { cause: error });
  }
}

/** Records named by the header line. Values stay text; fields missing at the end of a line are NULL. */
function csvRecords(
  { delimiter, set_values_to_none: none }: Extract<Decoder, { type: 'CsvDecoder' }>,
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
