/**
 * Transfers between tables that a continuous connection follows, and a reader that adds up what the destination shows.
 *
 *   bun tests/bench/continuous.ts [looks=20000] [kills=20] [transfers per second=200] [tables=20]
 *
 * Prints the number of looks and of wrong totals while workers are killed, and before that the time from the commit of
 * each transfer to the first look that shows it, beside a native subscription to the same tables.
 */
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connections } from '../../db/schema/index.ts';
import { createPlainDatabase, openTestDeps } from '../support/database.ts';
import { makePipeline } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { workerCommand } from '../../server/worker/worker-command.ts';

const [looks = '20000', kills = '20', rate = '200', tables = '20'] = process.argv.slice(2);
const COUNT = Number(tables);
const START = 1000;
const KILL_EVERY = Math.ceil(Number(looks) / (Number(kills) + 1));

const service = await openTestDeps();
const [bank, warehouse, replica] = [
  await createPlainDatabase(),
  await createPlainDatabase(),
  await createPlainDatabase(),
];
// The test server commits without waiting for the log to be written, and nothing that is not written is sent: a fifth of a
// second later. Servers with data of their own wait.
const source = postgres(bank.url, { max: 8, onnotice: () => {}, connection: { synchronous_commit: 'on' } });
const target = postgres(warehouse.url, { max: 2, onnotice: () => {} });
const subscriber = postgres(replica.url, { max: 2, onnotice: () => {} });
const names = Array.from({ length: COUNT }, (_, at) => `account_${at}`);
await source`create table clock (id int primary key, n int not null, at timestamptz not null)`;
await source`insert into clock values (1, 0, now())`;
for (const name of names) {
  await source.unsafe(`create table ${name} (id int primary key, balance int not null)`);
  await source.unsafe(`insert into ${name} values (1, ${START})`);
}

const untimed = { interval_minutes: null, cron_expression: null, timezone: 'UTC', time_of_day: null };
const { connection } = await makePipeline(service, {
  source: { name: 'postgres', parameters: { ...postgresParameters(bank.url), replication: 'logical' } },
  destination: { name: 'postgres', parameters: postgresParameters(warehouse.url) },
  stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
  connection: {
    schedule: { type: 'continuous', ...untimed },
    next_run_at: new Date().toISOString(),
    destination_schema: 'followed',
  },
});

function startWorker(): Bun.Subprocess {
  const { DATA_DIR, SECRET_KEY, OBJECT_STORE_URL } = service.deps.config;
  const settings = { DATABASE_URL: service.url, DATA_DIR, SECRET_KEY, OBJECT_STORE_URL, LOG_LEVEL: 'error', DEMO: '0' };
  const env = { ...process.env, ...settings };
  return Bun.spawn(workerCommand(), { env, stdin: 'pipe', stdout: 'ignore', stderr: 'inherit' });
}
let worker = startWorker();
const isThere = async (name: string) =>
  (await target.unsafe(`select to_regclass('followed.${name}') as there`))[0]!.there !== null;
await until(async () => (await Promise.all([...names, 'clock'].map(isThere))).every(Boolean), { timeout_ms: 60_000 });

// A subscription cannot create its slot on the server that it is on itself.
await source`create publication peer for all tables`;
await source`select pg_create_logical_replication_slot('bench_peer', 'pgoutput')`;
for (const name of names) {
  await subscriber.unsafe(`create table ${name} (id int primary key, balance int not null)`);
  await subscriber.unsafe(`insert into ${name} values (1, ${START})`);
}
await subscriber`create table clock (id int primary key, n int not null, at timestamptz not null)`;
await subscriber`insert into clock values (1, 0, now())`;
await subscriber.unsafe(
  `create subscription bench_peer connection '${bank.url}'
     publication peer with (create_slot = false, slot_name = 'bench_peer', copy_data = false)`,
);

const end = new AbortController();
let transfers = 0;
const MS = source`extract(epoch from clock_timestamp()) * 1000`;
/** When each transfer was about to be committed, in ms. */
const written = new Map<number, number>();
async function transfer(): Promise<void> {
  const [from, to] = names.toSorted(() => Math.random() - 0.5);
  // In one order, so that transfers do not end in deadlocks.
  const steps: [string, number][] = [
    [from!, -1],
    [to!, 1],
  ];
  await source.begin(async (tx) => {
    for (const [name, by] of steps.toSorted(([a], [b]) => a.localeCompare(b)))
      await tx.unsafe(`update ${name} set balance = balance + ${by}`);
    const [now] = await tx`update clock set n = n + 1, at = clock_timestamp() returning n, ${MS} as ms`;
    written.set(now!.n, Number(now!.ms));
  });
  transfers += 1;
}
/** Adds up what one side shows. */
class Looks {
  readonly wrong = new Map<string, number>();
  readonly times: number[] = [];
  shown = 0;
  readonly #text: string;
  readonly #clock: string;

  constructor(
    private readonly side: postgres.Sql,
    schema: string,
  ) {
    const total = names.map((name) => `(select balance from ${schema}.${name})`).join(' + ');
    this.#text = `select ${total} as total, n from ${schema}.clock`;
    this.#clock = `select n, extract(epoch from clock_timestamp()) * 1000 as ms from ${schema}.clock`;
  }

  /** Of the clock alone: adding up takes longer than what is measured. */
  async time(): Promise<void> {
    const [row] = await this.side.unsafe(this.#clock);
    for (; this.shown < row!.n; this.shown += 1) {
      const at = written.get(this.shown + 1);
      if (at !== undefined) this.times.push(Number(row!.ms) - at);
    }
  }

  async look(): Promise<void> {
    const [row] = await this.side.unsafe(this.#text);
    const total = String(row!.total);
    if (total !== String(COUNT * START)) this.wrong.set(total, (this.wrong.get(total) ?? 0) + 1);
    this.shown = row!.n;
  }

  report(name: string): void {
    const sorted = this.times.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(0);
    console.log(`${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms (${sorted.length} transfers)`);
  }
}

const [ours, theirs] = [new Looks(target, 'followed'), new Looks(subscriber, 'public')];
// Not measured: once it is there, all tables are copied, and both follow the log.
await transfer();
await until(async () => (await Promise.all([ours.time(), theirs.time()]), ours.shown + theirs.shown === 2), {
  timeout_ms: 60_000,
});
for (const { times } of [ours, theirs]) times.length = 0;
const moving = Array.from({ length: 4 }, async () => {
  while (!end.signal.aborted) {
    const next = Bun.sleep(4000 / Number(rate));
    await transfer();
    await next;
  }
});
const began = performance.now();
const before = transfers;
while (performance.now() - began < 15_000) {
  await Promise.all([ours.time(), theirs.time()]);
  await Bun.sleep(2);
}
const seconds = (performance.now() - began) / 1000;
console.log(`${((transfers - before) / seconds).toFixed(0)} transfers/s over ${COUNT} tables`);
ours.report('commit to visible');
theirs.report('with a subscription');
await subscriber`alter subscription bench_peer disable`;
await subscriber`alter subscription bench_peer set (slot_name = none)`;
await subscriber`drop subscription bench_peer`;

let killed = 0;
for (let count = 1; count <= Number(looks); count += 1) {
  await ours.look();
  if (count % KILL_EVERY !== 0 || killed >= Number(kills)) continue;
  worker.kill('SIGKILL');
  await worker.exited;
  worker = startWorker();
  killed += 1;
  const reached = ours.shown;
  await until(async () => (await ours.look(), ours.shown > reached), { timeout_ms: 120_000 });
}
const sum = [...ours.wrong.values()].reduce((all, one) => all + one, 0);
console.log(`${looks} looks, ${killed} SIGKILLs: ${sum} wrong totals`);

end.abort();
await Promise.all(moving);
await service.deps.db
  .update(connections)
  .set({ status: 'paused', next_run_at: null })
  .where(eq(connections.id, connection.id));
worker.kill('SIGTERM');
await worker.exited;
for (const {
  slot_name,
} of await source`select slot_name from pg_replication_slots where database = current_database()`)
  await source`select pg_drop_replication_slot(${slot_name})`;
await Promise.all([source.end(), target.end(), subscriber.end()]);
await Promise.all([bank.drop(), warehouse.drop(), replica.drop()]);
await service.close();
process.exit(sum === 0 ? 0 : 1);
