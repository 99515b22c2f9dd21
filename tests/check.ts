import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { RUNTIME_SETTINGS } from '../server/platform/tune-runtime.ts';
import { FRUGAL } from './support/compiler.ts';
import { fastFolder } from './support/fast-folder.ts';
import { readTestReport } from './support/test-report.ts';
import { bundleService } from './support/service-bundle.ts';
import { isThorough } from './support/thorough.ts';
import { sharedServers, stopTestServers } from './support/postgres.ts';

/**
 * Everything that must hold before a change is merged. The last line counts each static check and each test as one.
 * `--times` also prints the slowest test files.
 */

const ROOT = join(import.meta.dir, '..');
const scratch = mkdtempSync(join(tmpdir(), 'data-pipelines-check-'));
/** The last duration of each test file. The slowest files start first, so that none is left at the end. */
const TIMINGS = join(ROOT, 'node_modules/.cache/test-timings.json');
/** What they are until the first check: seconds of the slowest files. Only the order of the files depends on them. */
const EXPECTED = join(import.meta.dir, 'slow-files.json');
const OTHERWISE_SECONDS = 5;
const SLOWEST = 30;
/** More than the two processors of the smallest machine, since tests wait for half of their time. */
const TEST_PROCESSES = 4;
/**
 * Tests and their processes are short. The last tier of the engine, which compiles for long runs, took a sixth of their
 * processor time, and collections of garbage by the clock 6 to 15 %.
 */
const FOR_SHORT_RUNS = {
  BUN_JSC_useFTLJIT: '0',
  BUN_GC_TIMER_DISABLE: '1',
  // Otherwise each process of the service would start over with it.
  ...RUNTIME_SETTINGS,
};
/** Three times what the slowest machine has needed. Tests that hang have no limit while their file is loaded. */
const LONGEST_MS = 45 * 60_000;
const tally = { passed: 0, failed: 0, skipped: 0 };
/** Told once more at the end: whoever reads the last lines alone knows what failed. */
const failedTests: string[] = [];

interface Outcome {
  ok: boolean;
  output: string;
}

/** Runs a command of node_modules/.bin or of Bun itself; its output is shown when it fails. */
async function run(
  command: string[],
  options: { env?: Record<string, string>; show?: boolean; timeout?: number } = {},
): Promise<Outcome> {
  const child = Bun.spawn(command, {
    cwd: ROOT,
    env: { ...process.env, ...options.env },
    stdin: 'ignore',
    timeout: options.timeout,
    stdout: options.show ? 'inherit' : 'pipe',
    stderr: options.show ? 'inherit' : 'pipe',
  });
  const read = async (stream: ReadableStream | undefined) => (stream ? new Response(stream).text() : '');
  const [out, error, code] = await Promise.all([read(child.stdout), read(child.stderr), child.exited]);
  return { ok: code === 0, output: out + error };
}

const tool = (name: string, ...parameters: string[]) =>
  run([process.execPath, 'x', '--no-install', name, ...parameters], { env: FRUGAL });

async function step(name: string, work: () => Promise<Outcome>): Promise<void> {
  const start = performance.now();
  const { ok, output } = await work();
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  if (!ok) console.log(output);
  tally[ok ? 'passed' : 'failed'] += 1;
}

/** The migrations agree with the schema: generating again, on a copy, must add nothing. */
async function schemaDrift(): Promise<Outcome> {
  const copy = join(scratch, 'migrations');
  cpSync(join(ROOT, 'db/migrations'), copy, { recursive: true });
  const before = readdirSync(copy).length;
  const { ok, output } = await tool(
    'drizzle-kit',
    'generate',
    '--dialect=postgresql',
    '--schema=./db/schema/index.ts',
    `--out=${relative(ROOT, copy)}`,
  );
  return { ok: ok && readdirSync(copy).length === before && output.includes('No schema changes'), output };
}

/** One after the other, beside the tests. */
async function staticChecks(): Promise<void> {
  await step('format', () => tool('biome', 'format'));
  // One program of the compiler for both: rules that know types, and the errors of `tsc` by the tsconfig of each file.
  await step('lint and types', () => tool('oxlint', '--type-aware', '--type-check', '--threads=1'));
  await step('unused code', () => tool('knip', '--no-progress'));
  await step('migrations', () => tool('drizzle-kit', 'check', '--config=db/drizzle.config.ts'));
  await step('schema drift', schemaDrift);
  await step('hooks', () => tool('lefthook', 'validate'));
  await step('document', () => run([process.execPath, 'tests/contract/lint.ts']));
}

/** All tests, on servers that live until their end. */
async function tests(): Promise<void> {
  const start = performance.now();
  const files = [...new Bun.Glob('tests/**/*.test.ts').scanSync({ cwd: ROOT })];
  const bundle = isThorough ? null : await bundleService();
  try {
    const ok = await testFiles(files, {
      ...(await sharedServers()),
      ...bundle?.env,
      TMPDIR: fastFolder(),
      ...FOR_SHORT_RUNS,
    });
    console.log(`${ok ? 'ok    ' : 'FAILED'} tests (${((performance.now() - start) / 1000).toFixed(1)} s)`);
  } finally {
    bundle?.remove();
    await stopTestServers();
  }
}

async function testFiles(files: string[], env: Record<string, string>): Promise<boolean> {
  const report = join(scratch, 'tests.xml');
  if (!existsSync(TIMINGS)) expectTimings(files);
  const flags = [
    `--parallel=${TEST_PROCESSES}`,
    // The files of a process share its modules and its MariaDB, whose starts take seconds.
    '--no-isolate',
    `--timings=${TIMINGS}`,
    '--update-timings',
    '--only-failures',
    '--timeout=60000',
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ];
  const hung = setTimeout(printMachine, LONGEST_MS);
  const timeout = LONGEST_MS + 10_000;
  const { ok } = await run([process.execPath, 'test', ...flags, ...files], { env, show: true, timeout });
  clearTimeout(hung);
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const found = readTestReport(text);
  // The report counts neither a file that cannot be loaded nor a crash.
  const silent = files.filter((path) => !text.includes(`file="${path}"`));
  failedTests.push(...found.failed, ...silent.map((path) => `${path} (did not run)`));
  const missed = found.failures + silent.length;
  tally.skipped += found.skipped;
  tally.passed += found.tests - found.failures - found.skipped;
  tally.failed += missed === 0 && !ok ? 1 : missed;
  return ok;
}

/** What tests that hang are waiting for, or short of. */
function printMachine(): void {
  for (const command of ['free -m', 'df -m / /dev/shm', 'ps -eo pid,ppid,stat,etimes,cputimes,rss,wchan:24,args']) {
    console.log(`${command}\n${Bun.spawnSync(['sh', '-c', command]).stdout.toString()}`);
  }
}

function expectTimings(files: string[]): void {
  const slow = JSON.parse(readFileSync(EXPECTED, 'utf8')) as Record<string, number>;
  const timed = files.map((path) => [path, (slow[path] ?? OTHERWISE_SECONDS) * 1000]);
  mkdirSync(dirname(TIMINGS), { recursive: true });
  writeFileSync(TIMINGS, JSON.stringify({ version: 1, files: Object.fromEntries(timed) }));
}

/** Seconds of the slowest files, from start to end. */
function printTimes(): void {
  const { files } = JSON.parse(readFileSync(TIMINGS, 'utf8')) as { files: Record<string, number> };
  const slowest = Object.entries(files)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SLOWEST);
  for (const [path, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${path}`);
}

try {
  await Promise.all([tests(), staticChecks()]);
  if (process.argv.includes('--times')) printTimes();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
for (const failed of failedTests) console.log(`FAILED ${failed}`);
const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : '';
console.log(`${tally.passed} passed, ${tally.failed} failed${skipped}`);
process.exit(tally.failed === 0 ? 0 : 1);
