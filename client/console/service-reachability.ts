import { createStore } from './store.ts';

/** Whether the service cannot be reached. */
export const lost = createStore(false);

const LOOK_EVERY_MS = 1_000;

/** Tells that a call got no answer. From then on looks for the service, and calls `back` once it is there again. */
export function noteLost(back: () => void): void {
  if (lost.get()) return;
  lost.set(true);
  const look = async () => {
    const answer = await fetch('/healthz', { cache: 'no-store' }).catch(() => null);
    if (!answer?.ok) return void setTimeout(() => void look(), LOOK_EVERY_MS);
    lost.set(false);
    back();
  };
  setTimeout(() => void look(), LOOK_EVERY_MS);
}
