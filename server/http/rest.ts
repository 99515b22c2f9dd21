import type { AnyRouter } from '@trpc/server';
import type { Deps } from '../deps.ts';
import { RequestParts } from '../api/request-parser.ts';
import type { CallContext } from '../api/procedure.ts';
import { readForm } from './avatar.ts';
import { readJson } from './body.ts';
import type { Handler } from './edge.ts';
import { idempotent } from './idempotency.ts';
import { pageLinks } from './page-links.ts';
import { revisionsIn } from './if-match.ts';
import { sessionOf } from './session.ts';
import type { Endpoint, EndpointMeta } from '../api/endpoint-meta.ts';
import type { HttpExchange } from './exchange.ts';

/** A procedure and how to call it without tRPC's own HTTP layer. */
interface Procedure {
  (call: {
    ctx: CallContext;
    getRawInput: () => Promise<unknown>;
    path: string;
    type: string;
    signal: AbortSignal;
    batchIndex: number;
  }): Promise<unknown>;
  _def: { type: string; meta?: EndpointMeta; output?: unknown };
}

export interface ServedProcedure {
  /** The tRPC name, such as `connections.create`. */
  name: string;
  procedure: Procedure;
  endpoint: Endpoint;
}

/** Every procedure with an endpoint. */
export function proceduresOf(routers: readonly AnyRouter[]): ServedProcedure[] {
  return routers
    .flatMap((router) => Object.entries(router._def.procedures as Record<string, Procedure>))
    .flatMap(([name, procedure]) => {
      const endpoint = procedure._def.meta?.endpoint;
      return endpoint ? [{ name, procedure, endpoint }] : [];
    });
}

/** A path and its handlers by method. */
export interface PathRoutes {
  /** With positional names, because Elysia refuses two names at one position: `/connections/:p1/run`. */
  pattern: string;
  /** As declared, for metrics. */
  template: string;
  handlers: Map<string, Handler>;
}

/** A page or a file. */
export const getRoute = (pattern: string, handler: Handler): PathRoutes => ({
  pattern,
  template: pattern,
  handlers: new Map([['GET', handler]]),
});

/** The routes of the procedures, grouped by path. */
export function restRoutes(deps: Deps, served: readonly ServedProcedure[]): PathRoutes[] {
  const byPattern = new Map<string, PathRoutes>();
  for (const one of served) {
    let position = 0;
    const pattern = one.endpoint.path.replaceAll(/\{\w+\}/g, () => `:p${++position}`);
    const routes = byPattern.get(pattern) ?? { pattern, template: one.endpoint.path, handlers: new Map() };
    byPattern.set(pattern, routes);
    if (routes.handlers.has(one.endpoint.method))
      throw new Error(`${one.name}: another procedure has the same endpoint`);
    const handler = procedureHandler(deps, one);
    const limit = one.endpoint.max_body_bytes ?? undefined;
    routes.handlers.set(
      one.endpoint.method,
      acceptsIdempotencyKey(one.endpoint) ? idempotent(deps, handler, { limitOf: () => limit }) : handler,
    );
  }
  return [...byPattern.values()];
}

/** Not for forms: their boundary differs with each request, and repeating an upload is harmless. */
export const acceptsIdempotencyKey = ({ method, consumes }: Endpoint) =>
  method === 'POST' && consumes === 'application/json';

/** The console uses REST, with its session, only for forms and files, which tRPC cannot carry. */
const takesSession = ({ consumes, produces }: Endpoint) => consumes !== 'application/json' || produces !== null;

function procedureHandler(deps: Deps, { name, procedure, endpoint }: ServedProcedure): Handler {
  const names = Object.keys(endpoint.params.shape);
  return async (exchange) => {
    let reading: Promise<RequestParts> | undefined;
    const data = await procedure({
      ctx: {
        deps,
        request_id: exchange.request_id,
        address: exchange.address,
        user_agent: exchange.request.headers.get('user-agent'),
        authorization: exchange.request.headers.get('authorization'),
        if_match: endpoint.revisioned ? revisionsIn(exchange.request.headers.get('if-match')) : null,
        session: takesSession(endpoint) ? sessionOf(deps, exchange.request) : null,
        setHeader: (header, value) => exchange.headers.set(header, value),
        changed: async (db, result) => exchange.keep?.(db, { status: endpoint.status, body: result ?? null }),
      },
      // Called more than once, after key and permission are checked.
      getRawInput: () => (reading ??= readParts(exchange, endpoint, names)),
      path: name,
      type: procedure._def.type,
      signal: exchange.request.signal,
      batchIndex: 0,
    });
    if (data instanceof Response) return data;
    if (endpoint.revisioned) exchange.headers.set('etag', `"${(data as { revision: number }).revision}"`);
    const links = pageLinks(deps.config, exchange, { endpoint, data });
    if (links) exchange.headers.set('link', links);
    if (endpoint.status === 204) return new Response(null, { status: 204 });
    return Response.json(data ?? null, { status: endpoint.status });
  };
}

const READERS = { 'application/json': readJson, 'multipart/form-data': readForm };

async function readParts(exchange: HttpExchange, endpoint: Endpoint, names: string[]): Promise<RequestParts> {
  const params = Object.fromEntries(names.map((name, index) => [name, exchange.params[index]]));
  const body =
    endpoint.body === null
      ? undefined
      : await READERS[endpoint.consumes](exchange.request, endpoint.max_body_bytes ?? undefined);
  return new RequestParts(params, readQuery(exchange.request.url), body);
}

/** A repeated key becomes a list, which only a declared list accepts. */
function readQuery(url: string): Record<string, unknown> {
  const start = url.indexOf('?');
  if (start < 0) return {};
  const query = new Map<string, unknown>();
  for (const [name, value] of new URLSearchParams(url.slice(start))) {
    const before = query.get(name);
    query.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(query);
}

/** Answers methods without a procedure: OPTIONS with the allowed methods, others with 405. */
export function otherMethods({ handlers }: PathRoutes): Handler {
  const own = [...handlers.keys()];
  const allow = [...own, ...(own.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].toSorted().join(', ');
  return ({ request }) =>
    request.method === 'OPTIONS'
      ? new Response(null, { status: 204, headers: { allow } })
      : Response.json(
          { detail: 'Method Not Allowed', code: 'method_not_allowed' },
          { status: 405, headers: { allow } },
        );
}
