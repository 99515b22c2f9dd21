import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import type { AppRouter } from '../../server/router.ts';
import { createApiClient } from '../api.ts';
import { BASE_PATH } from './base-path.ts';
import { confirmingFetch } from './confirm-session.tsx';
import { queryClient } from './query-client.ts';
import { CONSOLE_HEADERS } from './session.ts';

export type RouterInputs = inferRouterInputs<AppRouter>;
export type RouterOutputs = inferRouterOutputs<AppRouter>;

/** The typed client itself, for subscriptions and for mutations that run as part of a query. */
export const client = createApiClient(location.origin + BASE_PATH, undefined, {
  headers: () => CONSOLE_HEADERS,
  fetch: confirmingFetch((input, init) => fetch(input, init)),
});

/** Query options for `useQuery`, and procedures for `useAction`. */
export const trpc = createTRPCOptionsProxy<AppRouter>({ client, queryClient });
