/**
 * `bun tests/bench/all.ts [--write] [--only NAME] [--json FILE]`: the benches with a goal, one after the other, in less
 * than an hour; those of the README first. Each round waits until the machine is quiet. Prints the versions of the peers,
 * the benches' own lines and the README's tables, and stores all figures as JSON. `--write`: also in the README, if all
 * of those have succeeded. `--only`: those whose names contain one of the texts between commas. Needs Debian's postgresql-15 and
 * mariadb-server, and PEERS, the folder of tests/bench/peers/install.sh.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { busyCores } from './quiet.ts';
import type { Result } from './report.ts';

interface Bench {
  file: string;
  args: (string | number)[];
  /** The cell of the README, unless it is not shown there. */
  cell?(results: Result[]): string;
}

const BENCHES: Bench[] = [
  {
    file: 'pg-to-pg.ts',
    args: [1_000_000, 5],
    cell: ([result]) =>
      `${perSecond(result, 'run: append, no key')} rows/s, ${ratio(result, 'psql | psql binary')} of \`psql \\| psql\` (binary)`,
  },
  {
    file: 'csv-to-pg.ts',
    args: [1_000_000, 5],
    cell: ([result]) => `${perSecond(result, 'run')} rows/s, ${ratio(result, 'psql \\copy')} of \`psql \\copy\``,
  },
  {
    file: 'mysql-to-pg.ts',
    args: [1_000_000, 3],
    cell: ([result]) =>
      `${perSecond(result, 'run: append')} rows/s, ${ratio(result, 'mysql | psql \\copy')} of \`mysql \\| psql\``,
  },
  {
    file: 'append-dedup.ts',
    args: [1_000_000, 10_000_000, 2],
    cell: ([result]) =>
      `${perSecond(result, 'run: append_dedup')} rows/s, ${ratio(result, 'psql: copy, insert on conflict')} of psql`,
  },
  {
    file: 'cdc.ts',
    args: [300_000, 1],
    cell(results) {
      const result = results.find(({ title }) => title.includes('transactions of 1,000 changes'));
      return `${perSecond(result, 'run')} changes/s, ${ratio(result, 'a subscription')} of a subscription`;
    },
  },
  { file: 'latency.ts', args: [20], cell: ([result]) => `${figure(result, 'succeeded_ms').toFixed(0)} ms` },
  {
    file: 'memory.ts',
    args: [1_000_000, 10_000_000],
    cell: ([result]) => `${figure(result, 'small_mb')} and ${figure(result, 'large_mb')} MB`,
  },
  { file: 'peers.ts', args: [1_000_000, 1] },
  { file: 'parquet.ts', args: [1_000_000, 3] },
  { file: 'http-api.ts', args: [1000, 7, 0] },
  { file: 'excel.ts', args: [1_000_000] },
  { file: 'xml.ts', args: [1_000_000] },
  { file: 'sent-rows.ts', args: [1_000_000, 100] },
  { file: 'initial-copy.ts', args: [] },
  { file: 'binlog.ts', args: [300_000] },
  { file: 'verify.ts', args: [1_000_000, 2] },
  { file: 'fan-out.ts', args: [400] },
  { file: 'start.ts', args: [3] },
  { file: 'idle.ts', args: [] },
  { file: 'api.ts', args: [5] },
];

/** After which tests/bench/peers.ts ends a peer. */
const PEER_LIMIT_SECONDS = 60;
/** The first cell of the README's rows, by the titles of tests/bench/peers.ts. */
const PEER_ROWS: Record<string, string> = {
  'peers: pg to pg': 'PostgreSQL',
  'peers: mysql to pg': 'MariaDB',
  'peers: csv to pg': 'CSV',
  'peers: parquet to pg': 'Parquet',
};

const PEERS = ['psql', 'pg_dump', '/usr/lib/postgresql/15/bin/postgres', 'pg_recvlogical', 'mysql'];
const README = join(import.meta.dir, '../../README.md');

const { values: options } = parseArgs({
  options: { write: { type: 'boolean' }, only: { type: 'string', default: '' }, json: { type: 'string' } },
});
const started = new Date();
const machine = { processor: cpus()[0]?.model ?? 'unknown', cores: cpus().length, busy_cores: await busyCores() };
const versions = { bun: Bun.version, ...Object.fromEntries(PEERS.map((peer) => [peer, versionOf(peer)])) };
console.log(`${machine.cores} cores of ${machine.processor}, ${machine.busy_cores.toFixed(1)} of them busy`);
for (const [peer, version] of Object.entries(versions)) console.log(`  ${peer}: ${version}`);

const benches = BENCHES.filter(({ file }) => options.only.split(',').some((text) => file.includes(text)));
const done: { bench: Bench; seconds: number; results: Result[] | null }[] = [];
for (const bench of benches) {
  console.log(`\n${bench.file} ${bench.args.join(' ')}`);
  const began = performance.now();
  const results = await run(bench);
  done.push({ bench, seconds: (performance.now() - began) / 1000, results });
}

const json = options.json ?? join(tmpdir(), `data-pipelines-bench-${started.toISOString().replaceAll(':', '')}.json`);
const stored = done.map(({ bench: { file, args }, seconds, results }) => ({ file, args, seconds, results }));
writeFileSync(json, `${JSON.stringify({ started, machine, versions, benches: stored }, null, 2)}\n`);
const cells = new Map<string, string>();
for (const { bench, results } of done) if (results && bench.cell) cells.set(bench.file, bench.cell(results));
const compared = done.flatMap(({ bench, results }) => (bench.file === 'peers.ts' && results ? results : []));
console.log(`\nAll in ${((Date.now() - started.getTime()) / 60_000).toFixed(1)} minutes, figures in ${json}`);
for (const { bench, results } of done) {
  console.log(`  ${bench.file.padEnd(16)} ${results ? (cells.get(bench.file) ?? 'done') : 'FAILED'}`);
}
if (done.some(({ bench, results }) => bench.cell && !results)) process.exit(1);
if (options.write) writeFileSync(README, withCells(readFileSync(README, 'utf8')));

/** Null: it has failed. */
async function run({ file, args }: Bench): Promise<Result[] | null> {
  const path = join(tmpdir(), `data-pipelines-bench-${process.pid}-${file}.jsonl`);
  try {
    writeFileSync(path, '');
    const child = Bun.spawn([process.execPath, join(import.meta.dir, file), ...args.map(String)], {
      env: { ...process.env, BENCH_RESULTS: path },
      stdout: 'inherit',
      stderr: 'inherit',
    });
    if ((await child.exited) !== 0) return null;
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    return lines.filter(Boolean).map((line) => JSON.parse(line) as Result);
  } finally {
    rmSync(path, { force: true });
  }
}

/** Replaces the result in each row whose command runs one of the benches, and the rows of the peers. */
function withCells(readme: string): string {
  let text = readme;
  for (const [file, cell] of cells) {
    const row = new RegExp(`^(\\| [^\\n|]* \\| ).*( \\| \`bun tests/bench/${file.replace('.', '\\.')}\` \\|)$`, 'm');
    if (!row.test(text)) throw new Error(`the README has no row for ${file}`);
    text = text.replace(row, (_, before: string, after: string) => `${before}${cell}${after}`);
  }
  for (const { title, figures } of compared) text = withPeers(text, PEER_ROWS[title] ?? title, figures);
  return text;
}

/** The columns are those of the README: this service and its peers. */
function withPeers(readme: string, source: string, figures: Record<string, number>): string {
  const head = /^\| Source \|(.*)\|$/m.exec(readme)?.[1];
  const row = new RegExp(`^\\| ${source} \\|.*\\|$`, 'm');
  if (!head || !row.test(readme)) throw new Error(`the README has no row of peers for ${source}`);
  const columns = head.split('|').map((name) => {
    const seconds = figures[`${name.trim()}: seconds`];
    if ((figures[`${name.trim()}: failed after`] ?? 0) >= PEER_LIMIT_SECONDS) return `>${PEER_LIMIT_SECONDS}`;
    return seconds === undefined ? '–' : `${seconds.toFixed(1)}/${figures[`${name.trim()}: megabytes`]}`;
  });
  return readme.replace(row, `| ${source} | ${columns.join(' | ')} |`);
}

function versionOf(command: string): string {
  try {
    return Bun.spawnSync([command, '--version']).stdout.toString().trim();
  } catch {
    return 'not installed';
  }
}

function figure(result: Result | undefined, name: string): number {
  const value = result?.figures[name];
  if (value === undefined) throw new Error(`no figure ${name}`);
  return value;
}

function perSecond(result: Result | undefined, name: string): string {
  const rate = (result?.rows ?? Number.NaN) / figure(result, name);
  return (Math.round(rate / 1000) * 1000).toLocaleString('en');
}

/** Of the first contestant that is compared with the peer. */
function ratio(result: Result | undefined, peer: string): string {
  const found = result?.ratios?.find((one) => one.peer === peer);
  if (!found) throw new Error(`nothing is compared with ${peer}`);
  return found.ratio.toFixed(2);
}
