import { DataError } from '../../contract/errors.ts';
import { jsonErrorAt, parseExactly, rawNumber } from '../../cells/json-line.ts';
import { JSON_LIMITS, tooComplexAt } from '../../cells/json-limits.ts';
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
  if (tooComplexAt(text) !== null) {
    throw new DataError(
      'json_limit_exceeded',
      `${stream}: the response of ${url.host}${url.pathname} has more than ${JSON_LIMITS}. Request smaller pages`,
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

/** What a selector found, as records: each item of a list, or the one value. A value that is no object is `{ value }`. */
export function recordsOf(found: unknown): ApiRecord[] {
  if (found === null || found === undefined) return [];
  const items: unknown[] = Array.isArray(found) ? found : [found];
  return items.every(isRecord) ? items : items.map((item) => (isRecord(item) ? item : { value: item }));
}

/** Numbers whose digits are kept as raw JSON are objects too, but no records. */
const isRecord = (item: unknown): item is ApiRecord =>
  typeof item === 'object' && item !== null && !Array.isArray(item) && rawNumber(item) === null;

/** The page without records that have no field: they say nothing, and would be rows of NULL. */
export const withoutEmpty = <Page extends RecordPage>(page: Page): Page =>
  page.records.some(isEmpty) ? { ...page, records: page.records.filter((record) => !isEmpty(record)) } : page;

function isEmpty(record: ApiRecord): boolean {
  for (const _ in record) return false;
  return true;
}

/** The first records of a stream, from which columns are inferred. The pages are closed afterwards. */
export async function firstRecords(pages: AsyncIterable<{ records: ApiRecord[] }>, max: number): Promise<ApiRecord[]> {
  const records: ApiRecord[] = [];
  for await (const page of pages) {
    records.push(...page.records);
    if (records.length >= max) return records.slice(0, max);
  }
  return records;
}
