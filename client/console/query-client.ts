import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { isApiError } from '../api.ts';
import { noteLost } from './service-reachability.ts';
import { noteSignedOut } from './session.ts';

const lose = () => noteLost(() => void queryClient.invalidateQueries());

/** Every failure of the service is seen here once, whichever page it befell. */
function noteFailure(error: unknown): void {
  if (!isApiError(error)) return;
  if (error.status === 401) noteSignedOut(error.code);
  if (error.code === 'network_error') lose();
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    // The typed client sends again by itself what may be sent again. Offline is found out by asking, not by the
    // browser's word: a service on this machine is there without a network.
    queries: { retry: false, staleTime: 2_000, networkMode: 'always' },
    mutations: { retry: false, networkMode: 'always' },
  },
});

window.addEventListener('offline', lose);
