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

test.each([
  [
    'a library that ends the process',
    ['-e', "import('./tests/support/must-finish.ts').then((m) => (m.mustFinish('x'), process.exit(0)))"],
  ],
  ['a number of cases that is none', ['tests/property/nightly.ts', '--cases', 'many']],
])('the nightly run does not succeed without its totals: %s', async (_, args) => {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: `${import.meta.dir}/../..`,
    stderr: 'pipe',
    timeout: 30_000,
  });
  const said = await new Response(child.stderr).text();
  expect([await child.exited, said]).toEqual([1, expect.stringMatching(/before its totals|not a number of cases/)]);
});
