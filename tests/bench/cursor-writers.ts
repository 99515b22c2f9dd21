/**
 * Counts updates that incremental reads lose while others write: four writers, transactions of 5 to 500 ms, an
 * `updated_at` of the database. Each run of a round is a read of the source from the state of the one before; after the
 * last one, the rows that were delivered are compared with the table.
 *
 *   bun tests/bench/cursor-writers.ts [postgres|mysql] [updates=10000] [runs=100]
 *
 * Meant for the night: 10,000 updates take about eleven minutes per database.
 */
import mysql from 'mysql2/promise';
import postgres from 'postgres';
import type { AnySource, StreamState } from '../../server/connectors/contract/connector.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { contextOf } from '../connectors/postgres-support.ts';
import { startMariaDb } from '../support/mariadb.ts';
import { createPlainDatabase } from '../support/database.ts';

const [database = 'postgres', updates = '10000', runs = '100'] = process.argv.slice(2);
const WRITERS = 4;
const LONGEST_MS = 500;
const SHORTEST_MS = 5;
/** Spreads the runs over the time that the writers take. */
const PAUSE_MS = (Number(updates) * (SHORTEST_MS + (LONGEST_MS - SHORTEST_MS) / 4)) / WRITERS / Number(runs);

interface Place {
  source: AnySource;
  config: object;
  now: string;
  moment: string;
  session(): Promise<(sql: string) => Promise<Record<string, unknown>[]>>;
}

async function onPostgres(): Promise<Place> {
  const { url } = await createPlainDatabase();
  const { hostname: host, port, pathname, username, password } = new URL(url);
  return {
    source: postgresSource,
    config: { host, port: Number(port), database: pathname.slice(1), username, password: decodeURIComponent(password) },
    now: 'now()',
    moment: 'timestamptz',
    session: async () => {
      const sql = postgres(url, { max: 1, onnotice: () => {} });
      return async (text) => [...(await sql.unsafe(text))];
    },
  };
}

async function onMysql(): Promise<Place> {
  const server = await startMariaDb();
  const name = await server.database();
  const { host, port, username, password } = server;
  return {
    source: mysqlSource,
    config: { host, port, username, password, database: name, ssl_mode: 'disable' },
    now: 'now(6)',
    moment: 'timestamp(6) null',
    session: async () => {
      const connection = await mysql.createConnection({ host, port, user: username, password, database: name });
      return async (text) => (await connection.query(text))[0] as Record<string, unknown>[];
    },
  };
}

const place = database === 'mysql' ? await onMysql() : await onPostgres();
const run = await place.session();
await run(`create table items (id int primary key, version int not null, updated_at ${place.moment})`);
await run(`create index items_updated_at on items (updated_at)`);
const ids = Array.from({ length: Number(updates) }, (_, at) => at + 1);
await run(`insert into items values ${ids.map((id) => `(${id}, 0, ${place.now})`).join(', ')}`);

/** Each row is updated once, so that no later update hides a lost one. */
const left = ids.toSorted(() => Math.random() - 0.5);
async function write(): Promise<void> {
  const own = await place.session();
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    // Many short ones, some long.
    const length = SHORTEST_MS + (LONGEST_MS - SHORTEST_MS) * Math.random() ** 3;
    await own('begin');
    await Bun.sleep(length * Math.random());
    await own(`update items set version = version + 1, updated_at = ${place.now} where id = ${id}`);
    await Bun.sleep(length * Math.random());
    await own('commit');
  }
}

const { ctx } = contextOf(place.source.config.parse(place.config));
const stream = (await place.source.discover(ctx)).find(({ name }) => name === 'items')!;
const delivered = new Map<string, string>();
let state: StreamState | null = null;
let rows = 0;
async function read(): Promise<void> {
  const columns = stream.fields.map((field) => ({ field, masking: 'none' as const }));
  const request = { stream, columns, filters: [], sync_mode: 'incremental' as const, window: null, state };
  for await (const batch of place.source.read(ctx, {
    ...request,
    cursor_field: ['updated_at'],
    primary_key: [['id']],
  })) {
    for (const [id, version] of batch.rows) {
      // As `append_dedup` does, the newest version counts; an older one must not come later.
      if (Number(version) > Number(delivered.get(id!) ?? -1)) delivered.set(id!, version!);
    }
    rows += batch.rows.length;
    if (batch.state) state = JSON.parse(JSON.stringify(batch.state)) as StreamState;
  }
}

const started = performance.now();
const writers = Promise.all(Array.from({ length: WRITERS }, write));
let reads = 0;
while (left.length > 0 || reads < Number(runs)) {
  await read();
  reads += 1;
  await Bun.sleep(PAUSE_MS);
}
await writers;
await read();
const table = await run('select id, version from items');
const lost = table.filter(({ id, version }) => delivered.get(String(id)) !== String(version)).length;
const total = table.reduce((sum, { version }) => sum + Number(version), 0);
const seconds = ((performance.now() - started) / 1000).toFixed(0);
console.log(`${database}: ${lost} of ${total} updates lost in ${reads + 1} runs; ${rows} rows read in ${seconds} s`);
process.exit(lost === 0 ? 0 : 1);
