/**
 * Moves random tables between all pairs of databases, with random settings, changes and crashes, and compares both sides
 * by SQL of the databases. Any difference that the run does not report is a failure, which is printed with its seed.
 * `--shrink`: seconds that each failure may take to become smaller.
 *
 *   bun run check:nightly [--cases 2000] [--seed 1] [--pair postgres:mysql] [--shrink 20]
 *   bun run check:nightly --pair postgres:mysql --seed 7 --path 0:3:1     one case again, shrunken
 */
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { stopTestServers } from '../support/postgres.ts';
import { runEndSteps } from '../support/at-end.ts';
import { mustFinish } from '../support/must-finish.ts';
import { anyCase, type Pair, PAIRS } from './cases.ts';
import { type Outcome, runCase } from './run-case.ts';
import { openWorld } from './world.ts';

const { values: given } = parseArgs({
  options: {
    cases: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    pair: { type: 'string' },
    path: { type: 'string' },
    shrink: { type: 'string', default: '20' },
  },
});
const pairs = given.pair ? PAIRS.filter(({ from, to }) => `${from}:${to}` === given.pair) : PAIRS;
if (pairs.length === 0) throw new Error(`No pair ${given.pair}. Choose one of ${PAIRS.map(nameOf).join(', ')}`);
const cases = given.path ? 1 : Number(given.cases);
if (!Number.isInteger(cases) || cases < 1) throw new Error(`--cases ${given.cases} is not a number of cases`);
const finish = mustFinish('check:nightly');
/** Shrinking a failure ends after this time, with the smallest case so far. */
const SHRINK_MS = Number(given.shrink) * 1000;

function nameOf({ from, to }: Pair): string {
  return `${from}:${to}`;
}

const world = await openWorld();
const tally = new Map<string, { cases: number; refused: number; failed: number }>();
const totals = { runs: 0, crashes: 0, rows: 0, counted: 0, refused: new Map<string, number>() };
const failures: string[] = [];

/** Runs one case of a pair, and shrinks it if it fails. */
async function tryOne(pair: Pair, seed: number): Promise<void> {
  const own = tally.get(nameOf(pair)) ?? { cases: 0, refused: 0, failed: 0 };
  tally.set(nameOf(pair), own);
  let first: Outcome | null = null;
  let shrinkUntil = Number.POSITIVE_INFINITY;
  const property = fc.asyncProperty(anyCase, async (plan) => {
    if (performance.now() > shrinkUntil) return;
    try {
      first = await runCase(world, pair, plan);
    } catch (error) {
      shrinkUntil = Math.min(shrinkUntil, performance.now() + SHRINK_MS);
      throw error;
    }
  });
  const result = await fc.check(property, { seed, numRuns: 1, path: given.path });
  own.cases += 1;
  if (result.failed) {
    own.failed += 1;
    const error = result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance);
    failures.push(`--pair ${nameOf(pair)} --seed ${seed} --path ${result.counterexamplePath}\n${error}`);
    console.log(`\nFAILED ${failures.at(-1)}\n`);
  } else if (first) count(first, own);
}

function count({ refused, ...outcome }: Outcome, own: { refused: number }): void {
  for (const key of ['runs', 'crashes', 'rows', 'counted'] as const) totals[key] += outcome[key];
  if (refused === null) return;
  own.refused += 1;
  totals.refused.set(refused, (totals.refused.get(refused) ?? 0) + 1);
}

const start = performance.now();
for (let index = 0; index < cases; index++) {
  await tryOne(pairs[index % pairs.length]!, Number(given.seed) + index);
  if ((index + 1) % 100 === 0) console.log(`${index + 1} cases, ${failures.length} failed, ${rate(index + 1)} cases/s`);
}

function rate(done: number): string {
  return ((done * 1000) / (performance.now() - start)).toFixed(2);
}

for (const [name, { cases: done, refused, failed }] of tally) {
  console.log(`${name.padEnd(20)} ${done} cases, ${refused} refused, ${failed} failed`);
}
console.log(
  `refused: ${[...totals.refused]
    .toSorted(([, a], [, b]) => b - a)
    .map(([code, n]) => `${code} ${n}`)
    .join(', ')}`,
);
console.log(
  `${totals.runs} runs with ${totals.crashes} crashes compared ${totals.rows} rows; ${totals.counted} changed values were reported`,
);
console.log(`${cases} cases, ${failures.length} with a silent difference, ${rate(cases)} cases/s`);
await world.close();
await runEndSteps();
await stopTestServers();
const done = [...tally.values()].reduce((sum, own) => sum + own.cases, 0);
finish(failures.length === 0 && done === cases ? 0 : 1);
