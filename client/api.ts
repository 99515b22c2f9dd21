import { createTRPCClient, httpBatchLink, httpLink, httpSubscriptionLink, splitLink } from '@trpc/client';
import { EventSource } from 'eventsource';
import type { AppRouter } from '../server/router.ts';
import { typedErrors } from './api-error.ts';
import { type Fetch, retryingFetch } from './retry.ts';

type Sending = NonNullable<Parameters<typeof httpLink<AppRouter>>[0]['fetch']>;

export { ApiError, isApiError, type Problem } from './api-error.ts';

export interface ClientOptions {
  /** Sent with every request, such as the CSRF token of a session; asked for each time. */
  headers?: () => Record<string, string>;
  /** Instead of the platform's own. */
  fetch?: Fetch;
}

/**
 * A typed client of every procedure, for Bun, Node 20 and browsers. `url`: address of the service without a path;
 * `key`: an API key, to be left out where a session's cookie stands for it (same origin).
 *
 * Reads of the same moment travel together. Changes travel alone, each under an Idempotency-Key of its own, so whatever
 * gets no answer is sent again and done once (see retry.ts). Subscriptions come as server-sent events and connect anew
 * by themselves. Every call takes `{ signal }` as its second argument.
 * @throws ApiError with `code`, `status`, `detail` and `request_id`; tell it by `isApiError`.
 */
export function createApiClient(url: string, key?: string, options: ClientOptions = {}) {
  const headers = () => ({ ...(key !== undefined && { authorization: `Bearer ${key}` }), ...options.headers?.() });
  const fetch: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  // Bun's type of a body's reader has one form more than tRPC's.
  const http = { url: new URL('/trpc', url), fetch: retryingFetch(fetch) as Sending };
  return createTRPCClient<AppRouter>({
    links: [
      typedErrors,
      splitLink({
        condition: ({ type }) => type === 'subscription',
        true: httpSubscriptionLink({
          url: http.url.href,
          // The platform's own cannot send a key.
          EventSource,
          eventSourceOptions: () => ({
            fetch: (input: string | URL, init: RequestInit) =>
              fetch(input, { ...init, headers: { accept: 'text/event-stream', ...headers() } }),
          }),
        }),
        false: splitLink({
          condition: ({ type }) => type === 'mutation',
          true: httpLink({ ...http, headers: () => ({ ...headers(), 'idempotency-key': crypto.randomUUID() }) }),
          false: httpBatchLink({ ...http, headers, maxItems: 100, maxURLLength: 8000 }),
        }),
      }),
    ],
  });
}
export type ApiClient = ReturnType<typeof createApiClient>;
