import { afterAll, expect, test } from 'bun:test';
import fc from 'fast-check';
import { limitHangs } from '../support/hangs.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { anyCase, PAIRS } from './cases.ts';
import { runCase } from './run-case.ts';
import { openWorld } from './world.ts';

// A sample of `bun run check:nightly`, the same in every run.
const SEED = 1;

limitHangs();
const world = mariaDbMissing ? null : await openWorld();
afterAll(() => world?.close());

test.skipIf(!world).each(PAIRS)('$from to $to: what arrives is what the source holds', async (pair) => {
  const [plan] = fc.sample(anyCase, { seed: SEED + PAIRS.indexOf(pair), numRuns: 1 });
  const outcome = await runCase(world!, pair, plan!);
  expect(outcome.runs).toBeGreaterThan(0);
});
