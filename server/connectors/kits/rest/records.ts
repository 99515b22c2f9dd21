import { DataError } from '../../contract/errors.ts';
import { jsonErrorAt, parseExactly, rawNumber } from '../../cells/json-line.ts';
import type { HttpResponse } from './send.ts';

export type ApiRecord = Record<string, unknown>;

export interface RecordPage {
  records: ApiRecord[];
  /** Size of the response. */
  bytes: number;
  /** Number of pages of the same request before this one. */
  index: number;
}

/** The JSON of a response; null for an empty one. @throws DataError naming the stream and the position */
export function parseResponse(stream: string, { text, status, url }: HttpResponse): unknown {
  if (text.trim() === '') return null;
  if (isTooComplex(text)) {
    throw new DataError(
      'json_limit_exceeded',
      `${stream}: the response of ${url.host}${url.pathname} has more than ${MAX_VALUES} values or ${MAX_DEPTH} levels. Request smaller pages`,
    );
  }
  try {
    return parseExactly(text);
  } catch (error) {
    const where = `${stream}: the response of ${url.host}${url.pathname} (status ${status})`;
    const what = text.trimStart().startsWith('<')
      ? 'is an HTML page, not JSON'
      : `is not valid JSON at character ${jsonErrorAt(text) + 1}`;
    throw new DataError('malformed_json', `${where} ${what}`, { cause: error });
  }
}

const MAX_VALUES = 8_000_000;
const MAX_DEPTH = 1_000;
const [QUOTE, COMMA, OPEN, CLOSE] = [0x22, 0x2c, 0x5b, 0x5d];
/** Turns a brace into a bracket. */
const TO_BRACKET = ~0x20;

/** Whether parsing would take seconds and memory out of proportion. Looks at long texts alone. */
export function isTooComplex(text: string): boolean {
  if (text.length < 1_000_000) return false;
  let values = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COMMA) values += 1;
    else if ((code & TO_BRACKET) === OPEN) {
      values += 1;
      depth += 1;
    } else if ((code & TO_BRACKET) === CLOSE) depth -= 1;
    if (values > MAX_VALUES || depth > MAX_DEPTH) return true;
  }
  return false;
}

/** Index of the quote that ends the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/** What a selector found, as records: each item of a list, or the one value. A value that is no object is `{ value }`. */
export function recordsOf(found: unknown): ApiRecord[] {
  if (found === null || found === undefined) return [];
  const items: unknown[] = Array.isArray(found) ? found : [found];
  return items.every(isRecord) ? items : items.map((item) => (isRecord(item) ? item : { value: item }));
}

/** Numbers whose digits are kept as raw JSON are objects too, but no records. */
const isRecord = (item: unknown): item is ApiRecord =>
  typeof item === 'object' && item !== null && !Array.isArray(item) && rawNumber(item) === null;

/** The first records of a stream, from which columns are inferred. The pages are closed afterwards. */
export async function firstRecords(pages: AsyncIterable<{ records: ApiRecord[] }>, max: number): Promise<ApiRecord[]> {
  const records: ApiRecord[] = [];
  for await (const page of pages) {
    records.push(...page.records);
    if (records.length >= max) return records.slice(0, max);
  }
  return records;
}
