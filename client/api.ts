import { createTRPCClient, httpBatchLink } from '@trpc/client';
import type { AppRouter } from '../server/router.ts';

/**
 * A typed client of every procedure. `url`: address of the service without a path; `key`: an API key. Calls made at the
 * same moment travel together.
 * @throws TRPCClientError with `data.code`, `data.httpStatus` and `data.detail` of the answer.
 */
export function createApiClient(url: string, key: string) {
  return createTRPCClient<AppRouter>({
    links: [
      httpBatchLink({
        url: new URL('/trpc', url),
        headers: { authorization: `Bearer ${key}` },
        maxItems: 100,
        maxURLLength: 8000,
      }),
    ],
  });
}
export type ApiClient = ReturnType<typeof createApiClient>;
