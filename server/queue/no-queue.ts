import type { Queue } from './boss.ts';

/** For commands: workers find what should be running, and send it. */
export const NO_QUEUE: Queue = {
  send: async () => {},
  sendAll: async () => {},
  work: async () => {},
  slots: () => [],
  stop: async () => {},
};
