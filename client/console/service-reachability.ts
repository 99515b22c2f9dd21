import { BASE_PATH } from './base-path.ts';
import { createStore } from './store.ts';

/** True while requests to the service get no response. */
export const serviceUnreachable = createStore(false);

const CHECK_INTERVAL_MS = 1_000;

/** Reports a request without a response. Polls the service from then on, and calls `onBack` once it responds again. */
export function reportUnreachable(onBack: () => void): void {
  if (serviceUnreachable.get()) return;
  serviceUnreachable.set(true);
  const check = async () => {
    const response = await fetch(`${BASE_PATH}/healthz`, { cache: 'no-store' }).catch(() => null);
    if (!response?.ok) return void setTimeout(() => void check(), CHECK_INTERVAL_MS);
    serviceUnreachable.set(false);
    onBack();
  };
  setTimeout(() => void check(), CHECK_INTERVAL_MS);
}
