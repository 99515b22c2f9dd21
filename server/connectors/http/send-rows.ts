import type { AnsweredRow, Rejection } from '../contract/connector.ts';
import { ConfigurationError, DataError } from '../contract/errors.ts';
import { parseExactly } from '../cells/json-line.ts';
import type { HttpClient } from '../kits/rest/client.ts';
import { messageIn } from '../kits/rest/failures.ts';
import type { HttpResponse } from '../kits/rest/send.ts';
import type { Operation, Operations, SentItem } from './operations.ts';
import type { HttpRequest } from '../kits/rest/request.ts';

/** The service answers for a row, not for the request as such. */
const ROW_STATUSES = [400, 409, 412, 413, 422];
const MAX_ANSWER = 2000;
/** Redacted before it is cut, so that no half of a secret remains. */
const MAX_REDACTED = 20_000;

/** Sends rows to a service and finds out what became of each. */
export class RowSender {
  /** Bytes of bodies that were answered. */
  bytes = 0;

  /** @param sent identifies the stream run in idempotency keys */
  constructor(
    private readonly client: HttpClient,
    private readonly operations: Operations,
    private readonly sent: string,
  ) {}

  /**
   * Rows with different keys. Resolves when all requests have ended.
   * @returns the rows that were answered, and the first error: the others may have arrived
   */
  async send(items: readonly SentItem[]): Promise<{ answered: AnsweredRow[]; error: Error | null }> {
    const { insert, update, remove } = this.operations;
    const tasks: Promise<AnsweredRow[]>[] = [];
    const of = (operation: Operation | null, wanted: (item: SentItem) => boolean) => {
      if (!operation) return;
      const own = items.filter(wanted);
      if (operation.rows === 1) tasks.push(...own.map((item) => this.#one(item, operation)));
      else for (const part of chunks(own, operation.rows)) tasks.push(this.#batch(operation, part));
    };
    if (insert === update) of(insert, ({ row }) => row.operation !== 'delete');
    else {
      of(insert, ({ row }) => row.operation === 'insert');
      of(update, ({ row }) => row.operation === 'update');
    }
    of(remove, ({ row }) => row.operation === 'delete');
    const ended = await Promise.allSettled(tasks);
    const answered = ended.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    const [error = null] = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
    return { answered, error };
  }

  /** A row in requests of its own: search, then create, update or delete. */
  async #one(item: SentItem, operation: Operation): Promise<AnsweredRow[]> {
    const { insert, update, search } = this.operations;
    try {
      if (!search) return await this.#alone(operation, item);
      const found = await this.#search(item);
      if (found === 'several')
        return [refusal(item, 'ambiguous_match', 'The search finds several records for the row')];
      if (item.row.operation === 'delete')
        return found ? await this.#alone(operation, { ...item, found }) : [{ row: item.row }];
      return await this.#alone(found ? update : insert, { ...item, found });
    } catch (error) {
      if (!(error instanceof ConfigurationError) || error.code !== 'missing_value') throw error;
      return [refusal(item, 'missing_value', `${error.message} in this row`)];
    }
  }

  async #alone(operation: Operation, item: SentItem): Promise<AnsweredRow[]> {
    const { insert, update } = this.operations;
    // Where a row is created, 404 is a wrong URL.
    const missing = operation === insert ? [] : operation.missing;
    const response = await this.#exchange(operation, [item], missing);
    if (!missing.includes(response.status)) return this.#judge(operation, [item], response);
    if (item.row.operation === 'delete') return [{ row: item.row }];
    // The record was deleted in the service.
    return this.#batch(operation === update ? insert : operation, [item]);
  }

  async #batch(operation: Operation, items: readonly SentItem[]): Promise<AnsweredRow[]> {
    return this.#judge(operation, items, await this.#exchange(operation, items, []));
  }

  async #exchange(operation: Operation, items: readonly SentItem[], missing: readonly number[]): Promise<HttpResponse> {
    const request = operation.request(items);
    const key = Bun.SHA256.hash(JSON.stringify([this.sent, request.method, request.url, request.body]), 'hex');
    const headers = { ...request.headers, 'idempotency-key': key.slice(0, 40) };
    const response = await this.client.send({ ...request, headers }, { statuses: [...ROW_STATUSES, ...missing] });
    this.bytes += Buffer.byteLength(request.body ?? '');
    return response;
  }

  /** A refused batch is divided until it is known which rows the service refuses. */
  async #judge(operation: Operation, items: readonly SentItem[], response: HttpResponse): Promise<AnsweredRow[]> {
    const [first] = items;
    const isRefused = ROW_STATUSES.includes(response.status);
    if (isRefused && items.length === 1 && first) return [this.#rejected(first, response)];
    const rejected = isRefused ? null : rejectedIn(operation, items, response);
    if (rejected) {
      return items.map((item, at) => {
        const entry = rejected.get(at);
        return entry === undefined ? { row: item.row } : this.#rejected(item, response, entry);
      });
    }
    const middle = Math.ceil(items.length / 2);
    const halves = [items.slice(0, middle), items.slice(middle)];
    const answered: AnsweredRow[] = [];
    for (const half of halves) answered.push(...(await this.#batch(operation, half)));
    return answered;
  }

  #rejected(item: SentItem, { status, text, headers, url }: HttpResponse, entry?: unknown): AnsweredRow {
    const shown = entry === undefined ? text : JSON.stringify(entry);
    const answer = this.client.redact(shown.slice(0, MAX_REDACTED)).slice(0, MAX_ANSWER);
    const said = entry === undefined ? messageOf(answer, headers.get('content-type')) : (messageIn(entry, 0) ?? shown);
    const message = `${url.host} rejected the row with status ${status}: ${this.client.redact(said).slice(0, 300)}`;
    return { row: item.row, rejection: { code: 'rejected_by_service', message, status, answer } };
  }

  async #search(item: SentItem): Promise<Record<string, unknown> | null | 'several'> {
    const { search } = this.operations;
    const request = search!.request(item);
    const response = await this.client.send(request, { statuses: [404] });
    if (response.status === 404) return null;
    const found = search!.record(jsonOf(request, response)) ?? null;
    const records = Array.isArray(found) ? (found as unknown[]) : found === null ? [] : [found];
    if (records.length > 1) return 'several';
    const [record = null] = records;
    if (record === null || typeof record === 'object') return record as Record<string, unknown> | null;
    throw new DataError('malformed_response', `${placeOf(request)}: the search selects something other than a record`);
  }
}

const refusal = (item: SentItem, code: string, message: string): AnsweredRow => ({
  row: item.row,
  rejection: { code, message, status: null, answer: null } satisfies Rejection,
});

function messageOf(answer: string, type: string | null): string {
  try {
    return messageIn(JSON.parse(answer), 0) ?? answer;
  } catch {
    return type?.includes('html') ? 'an HTML page' : answer;
  }
}

const placeOf = ({ method, url }: HttpRequest) => `${method} ${url.host}${url.pathname}`;

function jsonOf(
  request: Pick<HttpRequest, 'method' | 'url'>,
  { text, status }: Pick<HttpResponse, 'text' | 'status'>,
): unknown {
  try {
    return parseExactly(text);
  } catch {
    const where = `${request.method} ${request.url.host}${request.url.pathname}`;
    throw new DataError(
      'malformed_response',
      `${where} returned ${status} with a response that is not JSON, so it is unknown what became of the rows. Check the URL`,
    );
  }
}

/** Rejected rows by position; null: the response does not say which they are. */
function rejectedIn(
  operation: Operation,
  items: readonly SentItem[],
  response: HttpResponse,
): Map<number, unknown> | null {
  if (!operation.rejected) return new Map();
  const found = operation.rejected(jsonOf({ method: 'The request to', url: response.url }, response)) ?? [];
  const entries = Array.isArray(found) ? (found as unknown[]) : null;
  const count = entries ? entries.length : typeof found === 'number' ? found : found === false ? 0 : items.length;
  if (count === 0) return new Map();
  if (count >= items.length) return new Map(items.map((_, at) => [at, entries?.[at] ?? found]));
  if (!entries || !operation.position) return null;
  const places = new Map<number, unknown>();
  for (const entry of entries) {
    const at = Number(operation.position(entry));
    if (!Number.isInteger(at) || at < 0 || at >= items.length || places.has(at)) return null;
    places.set(at, entry);
  }
  return places;
}

function chunks<Item>(items: readonly Item[], size: number): Item[][] {
  const parts: Item[][] = [];
  for (let at = 0; at < items.length; at += size) parts.push(items.slice(at, at + size));
  return parts;
}
