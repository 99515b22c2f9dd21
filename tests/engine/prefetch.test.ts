import { expect, test } from 'bun:test';
import { prefetch } from '../../server/transfer/pace/prefetch.ts';

test('a source that never waits leaves timers their turn', async () => {
  const timer = { fired: false };
  let read = 0;
  // oxlint-disable-next-line typescript/require-await -- as a source that computes its rows
  async function* busy() {
    for (; read < 1000 && !timer.fired; read += 1) {
      const until = performance.now() + 2;
      while (performance.now() < until);
      yield read;
    }
  }
  setTimeout(() => (timer.fired = true), 1);
  for await (const _ of prefetch(busy));
  expect(read).toBeLessThan(1000);
});
