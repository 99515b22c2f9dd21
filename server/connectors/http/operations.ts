import { parseExactly } from '../cells/json-line.ts';
import { type Selector, selectorOf } from '../kits/rest/selector.ts';
import { renderEntries, renderJson, requireText, type TemplateScope } from '../kits/rest/template.ts';
import type { DifferentRow } from '../contract/connector.ts';
import { batchBody } from './body.ts';
import type { ObjectDefinition, RequestDefinition } from './definition.ts';
import { urlFor } from './service.ts';
import type { HttpDestinationConfig } from './settings.ts';
import type { HttpRequest } from '../kits/rest/request.ts';

/** A row with its JSON. For a delete, the JSON has the key alone. */
export interface SentItem {
  row: DifferentRow;
  text: string;
  key: string;
  found?: Record<string, unknown> | null;
}

/** A request for one or several rows, and what its response says about them. */
export interface Operation {
  /** Rows in one request. */
  rows: number;
  request(items: readonly SentItem[]): HttpRequest;
  /** Selects the rejected rows, or their number, in a successful response. */
  rejected: Selector | null;
  /** Selects the position of a rejected row. */
  position: Selector | null;
  /** Statuses that say that the service does not have the row. */
  missing: readonly number[];
}

/** How the rows of a table are sent. */
export interface Operations {
  insert: Operation;
  update: Operation;
  /** Null: rows that are gone stay in the service. */
  remove: Operation | null;
  search: { request(item: SentItem): HttpRequest; record: Selector } | null;
}

const optional = (text: string | undefined) => (text === undefined ? null : selectorOf(text));

/** The requests of settings without a definition: batches of rows. */
export function plainOperations(config: HttpDestinationConfig, table: string): Operations {
  const type = config.format === 'jsonl' ? 'application/x-ndjson' : 'application/json';
  const headers = { 'content-type': type, accept: 'application/json', ...lowercased(config.headers ?? {}) };
  const operation = (method: string, url: URL): Operation => ({
    rows: config.batch_rows,
    request: (items) => ({
      method,
      url,
      headers,
      body: batchBody(
        config,
        items.map(({ text }) => text),
      ),
    }),
    rejected: optional(config.rejected_selector),
    position: optional(config.rejected_row),
    missing: [],
  });
  const upsert = operation(config.method, urlFor(config, table));
  const { delete_url } = config;
  const remove =
    delete_url === undefined ? null : operation(config.delete_method, urlFor({ ...config, url: delete_url }, table));
  return { insert: upsert, update: upsert, remove, search: null };
}

/** The requests of a definition. */
export function definedOperations(config: HttpDestinationConfig, object: ObjectDefinition, table: string): Operations {
  const base = urlFor(config, table).href.replace(/\/+$/, '');
  const own = lowercased(config.headers ?? {});
  const build = (request: Templates, scope: TemplateScope, fallback: string | null): HttpRequest => {
    const path = requireText(request.path, scope, encodeURIComponent);
    const url = new URL(`${base}${path.startsWith('/') || path === '' ? '' : '/'}${path}`);
    for (const [name, value] of renderEntries(request.query, scope)) url.searchParams.append(name, value);
    const headers: Record<string, string> = { accept: 'application/json', ...own };
    for (const [name, value] of renderEntries(request.headers, scope)) headers[name.toLowerCase()] = value;
    const body = request.body === undefined ? fallback : JSON.stringify(renderJson(request.body, scope));
    if (body !== null) headers['content-type'] ??= 'application/json';
    return { method: request.method, url, headers, body };
  };
  const operation = (request: RequestDefinition): Operation => ({
    rows: request.rows,
    request: (items) => build(request, scopeOf(items, request.rows), fallbackBody(request, items)),
    rejected: optional(request.rejected),
    position: optional(request.rejected_row),
    missing: request.missing,
  });
  const { search, upsert, create, update } = object;
  return {
    insert: operation((upsert ?? create)!),
    update: operation((upsert ?? update)!),
    remove: object.delete ? operation(object.delete) : null,
    search: search
      ? { request: (item) => build(search, scopeOf([item], 1), null), record: selectorOf(search.record) }
      : null,
  };
}

type Templates = Pick<RequestDefinition, 'path' | 'query' | 'headers' | 'body'> & { method: string };

function fallbackBody({ method, rows }: RequestDefinition, items: readonly SentItem[]): string | null {
  if (rows > 1) return `[${items.map(({ text }) => text).join(',')}]`;
  return method === 'GET' || method === 'DELETE' ? null : (items[0]?.text ?? null);
}

function scopeOf(items: readonly SentItem[], rows: number): TemplateScope {
  if (rows > 1) return { rows: items.map(({ text }) => parseExactly(text)) };
  const [item] = items;
  const object = (text: string | undefined) => parseExactly(text ?? '{}') as Record<string, unknown>;
  return { row: object(item?.text), key: object(item?.key), found: item?.found ?? null };
}

const lowercased = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
