/**
 * Full refreshes of tables between which money moves, and a reader that adds up what the destination shows.
 *
 *   bun tests/bench/consistency.ts [runs=50] [tables=20] [transfers per second=200] [source=postgres] [destination=postgres]
 *
 * Source and destination: postgres, or mysql for a MariaDB. Prints the number of looks and of wrong totals, for
 * `consistency: run` and, in the same process, for `stream`; and the time of a run with both settings, for these tables
 * and for a single one.
 */
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connections } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { runEndSteps } from '../support/at-end.ts';
import { createPlainDatabase, openTestDeps } from '../support/database.ts';
import { testMariaDb } from '../support/mariadb.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';

const [runs = '50', tables = '20', rate = '200', from = 'postgres', to = 'postgres'] = process.argv.slice(2);
const COUNT = Number(tables);
const START = 1000;
const WRITERS = 4;

interface Line {
  /** One transaction: rows of the last statement. */
  transaction(statements: readonly string[]): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

interface Side {
  connector: { name: string; parameters: Record<string, unknown> };
  line(): Promise<Line>;
  /** A place for the tables of one connection, for `destination_schema`. */
  place(name: string): Promise<string>;
  close(): Promise<void>;
}

async function postgresSide(): Promise<Side> {
  const database = await createPlainDatabase();
  return {
    connector: { name: 'postgres', parameters: postgresParameters(database.url) },
    line: async () => {
      const sql = postgres(database.url, { max: 1, onnotice: () => {} });
      return {
        transaction: (statements) =>
          sql.begin(async (tx) => {
            let rows: Record<string, unknown>[] = [];
            for (const one of statements) rows = await tx.unsafe(one);
            return rows;
          }),
        close: () => sql.end(),
      };
    },
    place: async (name) => name,
    close: () => database.drop(),
  };
}

async function mysqlSide(): Promise<Side> {
  const server = await testMariaDb();
  const { host, port, username, password } = server;
  const database = await server.database();
  return {
    connector: { name: 'mysql', parameters: { host, port, username, password, database, ssl_mode: 'disable' } },
    line: async () => {
      const session = await server.session(database);
      return {
        transaction: async (statements) => {
          await session.run('start transaction');
          let rows: unknown = [];
          for (const one of statements) [rows] = (await session.run(one)) as [unknown];
          await session.run('commit');
          return rows as Record<string, unknown>[];
        },
        close: () => session.close(),
      };
    },
    place: () => server.database(),
    close: async () => {},
  };
}

const SIDES: Record<string, () => Promise<Side>> = { postgres: postgresSide, mysql: mysqlSide };
const service = await openTestDeps();
const [bank, warehouse] = [await SIDES[from]!(), await SIDES[to]!()];

const names = Array.from({ length: COUNT }, (_, at) => `account_${at}`);
const clerk = await bank.line();
for (const name of names) {
  await clerk.transaction([
    `create table ${name} (id int primary key, balance int not null)`,
    `insert into ${name} values (1, ${START})`,
  ]);
}
await clerk.close();

const end = new AbortController();
let transfers = 0;
async function transfer(line: Line): Promise<void> {
  const [giver, taker] = names.toSorted(() => Math.random() - 0.5);
  // In one order, so that transfers do not end in deadlocks.
  const steps = [
    [giver, -1],
    [taker, 1],
  ].toSorted(([a], [b]) => String(a).localeCompare(String(b)));
  await line.transaction(steps.map(([name, by]) => `update ${name} set balance = balance + ${Number(by)}`));
  transfers += 1;
}
const moving = Array.from({ length: WRITERS }, async () => {
  const line = await bank.line();
  while (!end.signal.aborted) {
    const next = Bun.sleep((WRITERS * 1000) / Number(rate));
    await transfer(line);
    await next;
  }
  await line.close();
});

/** In one statement: a snapshot of MariaDB does not cover a table that was renamed since. */
async function look(line: Line, schema: string): Promise<number> {
  const terms = names.map((name) => `(select balance from ${schema}.${name})`);
  const [row] = await line.transaction([`select ${terms.join(' + ')} as total`]);
  return Number(row?.total);
}

const worker = await startWorker(service.deps);
async function measure(consistency: 'run' | 'stream', only: string[]) {
  const schema = await warehouse.place(`${consistency}_${only.length}`);
  const made = await makePipeline(service, {
    source: bank.connector,
    destination: warehouse.connector,
    stream: { destination_sync_mode: 'overwrite', primary_key: [['id']] },
    connection: { destination_schema: schema },
    only,
  });
  await service.deps.db.update(connections).set({ consistency }).where(eq(connections.id, made.connection.id));
  await runEnded(service, await made.start(), 120_000);
  const done = new AbortController();
  const totals: number[] = [];
  const line = await warehouse.line();
  const looking = (async () => {
    while (!done.signal.aborted && only.length === COUNT) totals.push(await look(line, schema));
  })();
  const ms: number[] = [];
  const shown = new Set<number>();
  const [began, before] = [performance.now(), transfers];
  for (let run = 0; run < Number(runs); run++) {
    const ended = await runEnded(service, await made.start(), 120_000);
    const { status, started_at, finished_at, warnings, error } = ended;
    if (status !== 'succeeded' || warnings.length > 0)
      throw new Error(`a run ${status}`, { cause: { warnings, error } });
    ms.push(Date.parse(finished_at!) - Date.parse(started_at!));
    // What stays until the next run.
    if (only.length === COUNT) shown.add(await look(line, schema));
  }
  const speed = ((transfers - before) / (performance.now() - began)) * 1000;
  done.abort();
  await looking;
  await line.close();
  const wrong = totals.filter((total) => total !== COUNT * START).length;
  const results = [...shown].filter((total) => total !== COUNT * START).length;
  const median = ms.toSorted((a, b) => a - b)[Math.floor(ms.length / 2)];
  console.log(
    `${from} to ${to}, ${consistency}, ${only.length} tables, ${speed.toFixed(0)} transfers/s: ${wrong} wrong of ` +
      `${totals.length} looks, ${results} wrong totals after ${ms.length} runs; run ${median} ms (median)`,
  );
}

for (const consistency of ['run', 'stream'] as const) await measure(consistency, names);
for (const consistency of ['run', 'stream', 'run', 'stream'] as const) await measure(consistency, names.slice(0, 1));
end.abort();
await Promise.all(moving);
await worker.stop();
await Promise.all([bank.close(), warehouse.close()]);
await service.close();
await runEndSteps();
// The shared MariaDB ends with the process.
process.exit(0);
