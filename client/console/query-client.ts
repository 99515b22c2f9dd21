import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { isApiError } from '../api.ts';
import { reportUnreachable } from './service-reachability.ts';
import { reportSignedOut } from './session.ts';

const onUnreachable = () => reportUnreachable(() => void queryClient.invalidateQueries());

/** Every failed request passes here once, whichever page sent it. */
function onError(error: unknown): void {
  if (!isApiError(error)) return;
  if (error.status === 401) reportSignedOut(error.code);
  if (error.code === 'network_error') onUnreachable();
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    // The typed client retries what is safe to retry. `networkMode: always` because a service on this machine is
    // reachable even when the browser reports that it is offline.
    queries: { retry: false, staleTime: 2_000, networkMode: 'always' },
    mutations: { retry: false, networkMode: 'always' },
  },
});

window.addEventListener('offline', onUnreachable);
