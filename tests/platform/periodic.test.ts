import { expect, test } from 'bun:test';
import { periodic } from '../../server/platform/periodic.ts';
import { nextTurn } from '../../server/platform/steps.ts';
import { STEP_CLOCK } from '../../server/queue/step-clock.ts';
import { until } from '../support/until.ts';

/** Work that takes until it is let go, and counts its turns. */
function slowWork() {
  const seen = { turns: 0, at_once: 0, most_at_once: 0 };
  let letGo = Promise.withResolvers<void>();
  const work = async () => {
    seen.turns += 1;
    seen.at_once += 1;
    seen.most_at_once = Math.max(seen.most_at_once, seen.at_once);
    await letGo.promise;
    seen.at_once -= 1;
  };
  const release = () => {
    letGo.resolve();
    letGo = Promise.withResolvers<void>();
  };
  return { seen, work, release };
}

test('a turn that takes longer than the pause does not overlap the next one', async () => {
  const { seen, work, release } = slowWork();
  const loop = periodic(work, { every_ms: 1, immediately: true, onError: () => {} });
  let passed = 0;
  const clock = setInterval(() => (passed += 1), 1);
  await until(() => passed > 20);
  clearInterval(clock);
  expect(seen).toEqual({ turns: 1, at_once: 1, most_at_once: 1 });
  loop.wake();
  loop.wake();
  release();
  // Woken twice during a turn: one more turn, without a pause.
  await until(() => seen.turns === 2);
  release();
  await until(() => seen.turns > 2);
  const stopped = loop.stop();
  release();
  await stopped;
  expect(seen.most_at_once).toBe(1);
});

test('stop waits for the turn, tells it, and no other one begins', async () => {
  const events: string[] = [];
  const loop = periodic(
    async (signal) => {
      events.push('begun');
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      events.push('ended');
    },
    { every_ms: 1, immediately: true, onError: () => {} },
  );
  await loop.stop();
  loop.wake();
  expect(events).toEqual(['begun', 'ended']);
});

test('pauses of a second or more end together, and shorter ones by themselves', () => {
  for (const [every_ms, unit_ms] of [
    [1000, 1000],
    [2000, 2000],
    [10_000, 10_000],
    [60_000, 1000],
  ] as const) {
    for (const now of [0.25, 499.5, 1500, 123_456.789]) {
      const at = nextTurn(every_ms, { jitter: 0.1, now });
      expect(at % unit_ms).toBe(0);
      expect(Math.abs(at - now - every_ms)).toBeLessThanOrEqual(0.1 * every_ms + unit_ms / 2);
    }
  }
  expect(nextTurn(2000, { jitter: 0, now: 17 })).toBe(2000);
  expect(nextTurn(250, { jitter: 0.1, now: 17 })).toBeWithin(242, 292.001);
});

test('loops take their turns in the order in which they were created, however long the last ones took', async () => {
  const begun: string[] = [];
  const { work, release } = slowWork();
  const loop = (name: string, wait: () => Promise<void>) => {
    const turn = () => {
      begun.push(name);
      return wait();
    };
    return periodic(turn, { every_ms: 1000, immediately: true, onError: () => {} });
  };
  // Pauses that begin around the middle of a second may end at different ones.
  await until(() => performance.now() % 1000 < 250);
  const loops = [loop('first', work), loop('second', async () => {}), loop('third', async () => {})];
  await until(() => begun.length >= 5);
  expect(begun).toEqual(['first', 'second', 'third', 'second', 'third']);
  release();
  await until(() => begun.length >= 8);
  const stopped = Promise.all(loops.map((one) => one.stop()));
  release();
  await stopped;
  expect(begun.slice(5)).toEqual(['first', 'second', 'third']);
});

test('timers of the queue of a second or more take their turns with the loops', async () => {
  const begun: string[] = [];
  const note = (what: string) => () => void begun.push(what);
  const loop = periodic(async () => note('loop')(), { every_ms: 1000, onError: () => {} });
  const interval = STEP_CLOCK.setInterval(note('interval'), 1000);
  STEP_CLOCK.clearTimeout(STEP_CLOCK.setTimeout(note('cleared'), 1000));
  STEP_CLOCK.setTimeout(note('timeout'), 1000);
  STEP_CLOCK.setTimeout(note('short'), 1);
  await until(() => begun.length >= 6);
  STEP_CLOCK.clearInterval(interval);
  expect(begun).toEqual(['short', 'loop', 'interval', 'timeout', 'loop', 'interval']);
  await until(() => begun.length >= 8);
  await loop.stop();
  expect(begun.slice(6)).toEqual(['loop', 'loop']);
});

test('a turn that fails is reported once, and the loop goes on', async () => {
  const errors: unknown[] = [];
  let turns = 0;
  const loop = periodic(
    async () => {
      turns += 1;
      if (turns === 1) throw new Error('away');
    },
    { every_ms: 1, immediately: true, onError: (error) => errors.push(error) },
  );
  await until(() => turns === 1);
  await until(() => turns > 2);
  await loop.stop();
  expect(errors).toEqual([new Error('away')]);
  expect(loop.last_error).toBeNull();
});
