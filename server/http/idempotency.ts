import { createHash } from 'node:crypto';
import { authenticate, type Credentials } from '../api/authentication.ts';
import type { Deps } from '../deps.ts';
import { describeError } from '../api/error-response.ts';
import { badRequest, RequestShapeError } from '../platform/errors.ts';
import { claimKey, keepAnswer, type KeyedRequest, releaseKey } from '../api/idempotency-keys.ts';
import { readBytes } from './body.ts';
import type { Handler } from './edge.ts';
import type { HttpExchange } from './exchange.ts';

export const IDEMPOTENCY_HEADER = 'Idempotency-Key';
const REPLAYED_HEADER = 'idempotency-replayed';
const PRINTABLE = /^[\x20-\x7e]{1,255}$/;
/** Errors that depend on the state of the account. Errors of the request itself are not stored. */
const STORED_ERRORS = [400, 402, 404];
/** The form reader enforces a smaller limit. */
const MAX_FORM_BYTES = 4 * 1024 * 1024;
const FIRST_WAIT_MS = 20;
const MAX_WAIT_MS = 250;
const WAIT_TIMEOUT_MS = 90_000;

interface Reading {
  credentialsOf?: (request: Request) => Credentials;
  /** Bytes of the body; undefined: the default. */
  limitOf(request: Request): number | undefined;
}

/**
 * Implements the header Idempotency-Key. Within 24 hours, the same request of the same user runs once; repetitions get
 * the stored status and body, with `Idempotency-Replayed: true`, and wait while the first is in progress. Successes and
 * 400, 402 and 404 are stored; after other responses the key can be used again. A different request with the key is 400
 * `idempotency_key_reused`; a key that is not 1 to 255 printable ASCII characters is 422.
 */
export const idempotent =
  (deps: Deps, handler: Handler, { credentialsOf = apiKeyOf, limitOf }: Reading): Handler =>
  async (exchange) => {
    const key = exchange.request.headers.get(IDEMPOTENCY_HEADER);
    if (key === null) return handler(exchange);
    const credentials = credentialsOf(exchange.request);
    // Responses are stored per user. Public procedures, such as accepting an invitation, ignore the header.
    if (credentials.authorization === null && !credentials.session) return handler(exchange);
    const { user_id } = await authenticate(deps, credentials);
    if (!PRINTABLE.test(key)) throw badKey();
    const isForm = exchange.request.headers.get('content-type')?.startsWith('multipart/');
    const body = await readBytes(exchange.request, isForm ? MAX_FORM_BYTES : limitOf(exchange.request));
    const request = { user_id, key, request_hash: hashOf(exchange.request, body) };
    const replayed = await claimOrAnswer(deps, request, exchange.request.signal);
    if (replayed) return replayed;
    const { url, method, headers, signal } = exchange.request;
    const again = new Request(url, { method, headers, signal, ...(body.length > 0 && { body }) });
    return work(deps, request, { exchange: { ...exchange, request: again }, handler });
  };

const apiKeyOf = ({ headers }: Request): Credentials => ({ authorization: headers.get('authorization') });

const badKey = () =>
  new RequestShapeError([
    {
      loc: ['header', IDEMPOTENCY_HEADER.toLowerCase()],
      msg: 'Should have 1 to 255 printable ASCII characters',
      type: 'string_pattern_mismatch',
    },
  ]);

function hashOf(request: Request, body: Uint8Array): string {
  const { pathname, search } = new URL(request.url);
  return createHash('sha256').update(`${request.method} ${pathname}${search}\n`).update(body).digest('hex');
}

/** Null: this caller holds the claim and processes the request. */
async function claimOrAnswer(deps: Deps, request: KeyedRequest, signal: AbortSignal): Promise<Response | null> {
  const deadline = performance.now() + WAIT_TIMEOUT_MS;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
    const state = await claimKey(deps.db, deps.secrets, request);
    if (state.kind === 'claimed') return null;
    if (state.kind === 'answered') {
      return Response.json(state.body, { status: state.status, headers: { [REPLAYED_HEADER]: 'true' } });
    }
    if (state.kind === 'other_request') {
      throw badRequest(
        'idempotency_key_reused',
        'The Idempotency-Key was used for a different request within the last 24 hours',
      );
    }
    if (signal.aborted || performance.now() > deadline) {
      throw badRequest('idempotency_key_in_use', 'The first request with this Idempotency-Key is still in progress');
    }
    await Bun.sleep(wait);
  }
}

/** The claim expired and another request with the key was answered first. */
class Overtaken extends Error {}

async function work(
  deps: Deps,
  request: KeyedRequest,
  call: { exchange: HttpExchange; handler: Handler },
): Promise<Response> {
  let kept: boolean | null = null;
  const keep: HttpExchange['keep'] = async (db, { status, body }) => {
    kept = await keepAnswer(db, deps.secrets, { request, status, body });
    if (!kept) throw new Overtaken('Another request with this Idempotency-Key was answered');
  };
  const conclude = async ({ status, body }: { status: number; body: unknown }) => {
    const isWorthKeeping = status < 400 || STORED_ERRORS.includes(status);
    if (isWorthKeeping) await keepAnswer(deps.db, deps.secrets, { request, status, body });
    else await releaseKey(deps.db, request);
  };
  const replay = () => claimOrAnswer(deps, request, call.exchange.request.signal);
  try {
    const response = await call.handler({ ...call.exchange, keep });
    // tRPC returns errors that REST throws.
    const replayed = kept === false && (await replay());
    if (replayed) return replayed;
    if (!kept) await conclude({ status: response.status, body: await jsonOf(response) });
    return response;
  } catch (error) {
    const replayed = kept === false && (await replay());
    if (replayed) return replayed;
    await conclude(describeError(error, call.exchange.request_id));
    throw error;
  }
}

const jsonOf = async (response: Response): Promise<unknown> => {
  const text = await response.clone().text();
  return text === '' ? null : JSON.parse(text);
};
