import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import type { Deps } from '../deps.ts';
import { describeError } from '../lib/answers.ts';
import { appRouter } from '../router.ts';
import { readBytes } from './body.ts';
import type { Handler } from './edge.ts';

export const TRPC_PATH = '/trpc';
const MAX_BATCH = 100;

/** The tRPC face: the same procedures by their names, batches and subscriptions included. */
export const trpcHandler =
  (deps: Deps): Handler =>
  async ({ request, request_id }) =>
    fetchRequestHandler({
      endpoint: TRPC_PATH,
      req: await limited(request),
      router: appRouter,
      maxBatchSize: MAX_BATCH,
      createContext: ({ resHeaders }) => ({
        deps,
        request_id,
        authorization: request.headers.get('authorization'),
        setHeader: (name, value) => resHeaders.set(name, value),
      }),
      responseMeta: ({ errors }) => {
        const challenge = errors.map((error) => describeError(error, request_id)).find(({ status }) => status === 401);
        return challenge ? { headers: new Headers(challenge.headers) } : {};
      },
      onError: ({ error, path }) => {
        const { cause } = describeError(error, request_id);
        if (cause !== undefined) deps.log.error({ err: cause, request_id, path }, 'a call failed');
      },
    });

/** The adapter reads without a limit. */
async function limited(request: Request): Promise<Request> {
  if (request.body === null) return request;
  const { url, method, headers, signal } = request;
  return new Request(url, { method, headers, signal, body: await readBytes(request) });
}
