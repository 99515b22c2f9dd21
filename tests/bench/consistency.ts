/**
 * Full refreshes of tables between which money moves, and a reader that adds up what the destination shows.
 *
 *   bun tests/bench/consistency.ts [runs=50] [tables=20] [transfers per second=200]
 *
 * Prints the number of looks and of wrong totals, for `consistency: run` and, in the same process, for `stream`; and the
 * time of a run with both settings, for these tables and for a single one.
 */
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connections } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, openTestDeps } from '../support/database.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';

const [runs = '50', tables = '20', rate = '200'] = process.argv.slice(2);
const COUNT = Number(tables);
const START = 1000;

const service = await openTestDeps();
const bank = await createPlainDatabase();
const warehouse = await createPlainDatabase();
const source = postgres(bank.url, { max: 8, onnotice: () => {} });
const target = postgres(warehouse.url, { max: 4, onnotice: () => {} });
const parametersOf = (url: string) => {
  const { hostname: host, port, pathname, username, password } = new URL(url);
  return { host, port: Number(port), username, password: decodeURIComponent(password), database: pathname.slice(1) };
};

const names = Array.from({ length: COUNT }, (_, at) => `account_${at}`);
for (const name of names) {
  await source.unsafe(`create table ${name} (id int primary key, balance int not null)`);
  await source.unsafe(`insert into ${name} values (1, ${START})`);
}

const end = new AbortController();
async function transfer(): Promise<void> {
  const [from, to] = names.toSorted(() => Math.random() - 0.5);
  // In one order, so that transfers do not end in deadlocks.
  const steps = [
    [from, -1],
    [to, 1],
  ].toSorted(([a], [b]) => String(a).localeCompare(String(b)));
  await source.begin(async (tx) => {
    for (const [name, by] of steps) await tx.unsafe(`update ${String(name)} set balance = balance + ${Number(by)}`);
  });
}
const moving = Array.from({ length: 4 }, async () => {
  while (!end.signal.aborted) {
    const next = Bun.sleep(4000 / Number(rate));
    await transfer();
    await next;
  }
});

async function look(schema: string): Promise<number> {
  return target.begin('isolation level repeatable read read only', async (tx) => {
    let total = 0;
    for (const name of names) total += Number((await tx.unsafe(`select balance from ${schema}.${name}`))[0]?.balance);
    return total;
  });
}

const worker = await startWorker(service.deps);
async function measure(consistency: 'run' | 'stream', only: string[]) {
  const schema = `${consistency}_${only.length}`;
  const made = await makePipeline(service, {
    source: { name: 'postgres', parameters: parametersOf(bank.url) },
    destination: { name: 'postgres', parameters: parametersOf(warehouse.url) },
    stream: { destination_sync_mode: 'overwrite', primary_key: [['id']] },
    connection: { destination_schema: schema },
    only,
  });
  await service.deps.db.update(connections).set({ consistency }).where(eq(connections.id, made.connection.id));
  await runEnded(service, await made.start(), 120_000);
  const done = new AbortController();
  const totals: number[] = [];
  const looking = (async () => {
    while (!done.signal.aborted && only.length === COUNT) totals.push(await look(schema));
  })();
  const ms: number[] = [];
  for (let run = 0; run < Number(runs); run++) {
    const { status, started_at, finished_at } = await runEnded(service, await made.start(), 120_000);
    if (status !== 'succeeded') throw new Error(`a run ${status}`);
    ms.push(Date.parse(finished_at!) - Date.parse(started_at!));
  }
  done.abort();
  await looking;
  const wrong = totals.filter((total) => total !== COUNT * START).length;
  const median = ms.toSorted((a, b) => a - b)[Math.floor(ms.length / 2)];
  console.log(
    `${consistency}, ${only.length} tables: ${wrong} wrong of ${totals.length} looks; run ${median} ms (median)`,
  );
}

for (const consistency of ['run', 'stream'] as const) await measure(consistency, names);
for (const consistency of ['run', 'stream', 'run', 'stream'] as const) await measure(consistency, names.slice(0, 1));
end.abort();
await Promise.all(moving);
await worker.stop();
await Promise.all([source.end(), target.end()]);
await Promise.all([bank.drop(), warehouse.drop()]);
await service.close();
