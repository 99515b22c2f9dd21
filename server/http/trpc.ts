import { getErrorShape, getTRPCErrorFromUnknown } from '@trpc/server';
import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import { authenticate, type Credentials } from '../api/authentication.ts';
import type { Deps } from '../deps.ts';
import { recordRefusal } from '../api/audit/refusals.ts';
import { describeError } from '../api/error-response.ts';
import { routePath } from '../platform/base-path.ts';
import { badRequest } from '../platform/errors.ts';
import { appRouter } from '../router.ts';
import { readBytes } from './body.ts';
import type { Handler } from './edge.ts';
import { unauthenticatedCall } from './errors.ts';
import { refuseRoundedNumbers } from './exact-numbers.ts';
import { IDEMPOTENCY_HEADER, idempotent } from './idempotency.ts';
import { proceduresOf } from './rest.ts';
import { sessionOf } from './session.ts';
import type { HttpExchange } from './exchange.ts';

export const TRPC_PATH = '/trpc';
const MAX_BATCH = 100;

/**
 * The tRPC API: the same procedures by name, with batches and subscriptions. `Idempotency-Key` works as over REST for
 * single calls; a key on a batch is 400 `idempotency_key_on_batch`.
 */
export function trpcHandler(deps: Deps): Handler {
  const credentialsOf = (request: Request): Credentials => ({
    authorization: request.headers.get('authorization'),
    session: sessionOf(deps, request),
  });
  const limits = new Map(
    proceduresOf([appRouter]).map(({ name, endpoint }) => [name, endpoint.max_body_bytes ?? undefined]),
  );
  const limitOf = (request: Request) => limits.get(pathOf(deps, request));
  const calls: Handler = async (exchange) => {
    const limit = limitOf(exchange.request);
    // The others are too small to be worth a check before tRPC's own.
    if (limit !== undefined) await authenticate(deps, credentialsOf(exchange.request));
    return answerCalls(deps, exchange, { credentialsOf, limit });
  };
  const once = idempotent(deps, calls, { credentialsOf, limitOf });
  return async (exchange) => {
    try {
      refuseLargeBatch(exchange.request);
      if (exchange.request.method !== 'POST') return await calls(exchange);
      refuseKeyOnBatch(exchange.request);
      return await once(exchange);
    } catch (error) {
      await recordRefusal(deps, error, () => unauthenticatedCall(exchange, TRPC_PATH));
      return errorResponse(deps, exchange, error);
    }
  };
}

async function answerCalls(
  deps: Deps,
  exchange: HttpExchange,
  { credentialsOf, limit }: { credentialsOf: (request: Request) => Credentials; limit: number | undefined },
): Promise<Response> {
  const { request, request_id, keep } = exchange;
  return fetchRequestHandler({
    endpoint: endpointOf(deps, request),
    req: await limited(request, limit),
    router: appRouter,
    maxBatchSize: MAX_BATCH,
    allowMethodOverride: true,
    createContext: ({ resHeaders }) => ({
      deps,
      request_id,
      address: exchange.address,
      user_agent: request.headers.get('user-agent'),
      ...credentialsOf(request),
      setHeader: (name, value) => resHeaders.set(name, value),
      changed: async (db, data) => keep?.(db, { status: 200, body: { result: { data } } }),
    }),
    responseMeta: ({ errors }) => {
      const challenge = errors.map((error) => describeError(error, request_id)).find(({ status }) => status === 401);
      return challenge ? { headers: new Headers(challenge.headers) } : {};
    },
    onError: ({ error, path }) => logCause(deps, { error, request_id, path }),
  });
}

/** With the base path if the request has it. */
function endpointOf({ config }: Deps, { url }: Request): string {
  const below = new URL(url).pathname.length - routePath(config, url).length;
  return `${config.BASE_PATH.slice(0, below)}${TRPC_PATH}`;
}

/** The name of the procedure, or several with commas between them. */
const pathOf = ({ config }: Deps, { url }: Request) => routePath(config, url).slice(TRPC_PATH.length + 1);

/** tRPC would answer before it knows the request. */
function refuseLargeBatch({ url }: Request): void {
  const { pathname, searchParams } = new URL(url);
  const calls = pathname.split(',').length;
  if (calls <= MAX_BATCH || !searchParams.has('batch')) return;
  throw badRequest('batch_too_large', `A batch has at most ${MAX_BATCH} calls. Set maxItems of httpBatchLink`, {
    limit: MAX_BATCH,
    calls,
  });
}

/** One response cannot be stored in the transactions of several changes. */
function refuseKeyOnBatch({ headers, url }: Request): void {
  if (!headers.has(IDEMPOTENCY_HEADER) || !new URL(url).searchParams.has('batch')) return;
  throw badRequest('idempotency_key_on_batch', 'An Idempotency-Key cannot be used with a batch. Send the call alone');
}

/** Errors before tRPC handles the request, in the form of tRPC. */
function errorResponse(deps: Deps, { request, request_id }: HttpExchange, thrown: unknown): Response {
  const error = getTRPCErrorFromUnknown(thrown);
  const path = pathOf(deps, request);
  logCause(deps, { error, request_id, path });
  const { status, headers } = describeError(error, request_id);
  const ctx = { deps, request_id, address: () => '', user_agent: null, authorization: null, setHeader: () => {} };
  const config = appRouter._def._config;
  const shape = getErrorShape({ config, error, type: 'unknown', path, input: undefined, ctx });
  return Response.json({ error: shape }, { status, headers });
}

function logCause(deps: Deps, call: { error: unknown; request_id: string; path: string | undefined }): void {
  const { cause } = describeError(call.error, call.request_id);
  if (cause === undefined) return;
  deps.log.error({ err: cause, request_id: call.request_id, path: call.path }, 'call failed');
}

/** The adapter itself has no size limit and rounds numbers. */
async function limited(request: Request, limit: number | undefined): Promise<Request> {
  if (request.body === null) return request;
  const { url, method, headers, signal } = request;
  const body = await readBytes(request, limit);
  refuseRoundedNumbers(new TextDecoder().decode(body));
  return new Request(url, { method, headers, signal, body });
}
