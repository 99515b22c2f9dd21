import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { join } from 'node:path';
import postgres from 'postgres';
import { connectionStreams } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { daysBefore } from '../../server/transfer/lookback-window.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { mariaDbMissing, testMariaDb } from '../support/mariadb.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { isThorough } from '../support/thorough.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await database.drop();
});

test.each([
  ['2026-03-02', '2026-02-27'],
  ['2026-03-02 10:00:00.5', '2026-02-27 10:00:00.500000'],
  ['2026-03-02 10:00:00+00', '2026-02-27 10:00:00.000000+00'],
  ['2026-03-02 01:00:00+02', '2026-02-26 23:00:00.000000+00'],
  ['2026-03-02T10:00:00Z', '2026-02-27T10:00:00.000000Z'],
  ['17', null],
])('three days before %s is %s', (cursor, expected) => {
  expect(daysBefore(cursor, 3)).toBe(expected);
});

type Destination = 'postgres' | 'mysql' | 'duckdb' | 'file';
const DESTINATIONS = (['postgres', 'mysql', 'duckdb'] as const).filter((one) => one !== 'mysql' || !mariaDbMissing);

async function settingsOf(destination: Destination, table: string) {
  switch (destination) {
    case 'postgres':
      return postgresParameters(database.url);
    case 'mysql': {
      const server = await testMariaDb();
      const { host, port, username, password } = server;
      return { host, port, username, password, database: await server.database(), ssl_mode: 'disable' };
    }
    case 'duckdb':
      return { path: `${table}.duckdb` };
    case 'file':
      return { path: table, format: 'jsonl' };
  }
}

let counter = 0;
async function pipeline(
  stream: Partial<typeof connectionStreams.$inferInsert>,
  options: { days?: number; destination?: Destination; type?: string } = {},
) {
  const table = `t${++counter}`;
  const { type = 'timestamptz', destination = 'postgres' } = options;
  await sql.unsafe(`create table ${table} (id int primary key, note text, at ${type} not null);
    insert into ${table} select i, 'first', '2026-03-01'::${type} + make_interval(days => i) from generate_series(0, 9) i`);
  const parameters = await settingsOf(destination, table);
  const created = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(database.url) },
    destination: { name: destination, parameters },
    only: [table],
    connection: { destination_schema: destination === 'mysql' ? null : 'copy', backfill_days: options.days ?? 3 },
    stream: { sync_mode: 'incremental', cursor_field: ['at'], primary_key: [['id']], ...stream },
  });
  const rows = async (): Promise<unknown[][]> => {
    const query = (schema: string) => `select id, note from ${schema}.${table}`;
    if (destination === 'duckdb') {
      return onDuckDb(join(service.deps.config.DATA_DIR, 'files', `${table}.duckdb`), query('copy'));
    }
    const found =
      'database' in parameters && destination === 'mysql'
        ? await (await testMariaDb()).sql(query(String(parameters.database)))
        : await sql.unsafe(query('copy'));
    return found.map(({ id, note }) => [id, note]);
  };
  return { ...created, table, rows };
}
type Created = Awaited<ReturnType<typeof pipeline>>;

async function run(created: Created) {
  const id = await created.start();
  expect((await runEnded(service, id)).status).toBe('succeeded');
  return (await getStreamRuns(service, id))[0]!;
}
const cursorOf = async ({ connection }: Created) => {
  const [row] = await service.deps.db
    .select()
    .from(connectionStreams)
    .where(eq(connectionStreams.connection_id, connection.id));
  return row!.state?.cursor;
};
const copied = async (created: Created) =>
  (await created.rows())
    .map(([id, note]) => `${String(id)} ${String(note)}`)
    .toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1));

/** Changes one row within three days of the cursor and one before, and adds a late one; none of them moves the cursor. */
const late = ({ table }: Created) =>
  sql.unsafe(`update ${table} set note = 'second' where id in (2, 7);
    insert into ${table} values (99, 'late', '2026-03-08')`);
const WITH_LATE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => `${id} ${id === 7 ? 'second' : 'first'}`);

const MODES = (['append', 'append_dedup'] as const).flatMap((mode) => DESTINATIONS.map((one) => [mode, one] as const));
/** The engine alone decides where a read begins; what is replaced is up to the destination. */
const isFirst = (destination: Destination) => isThorough || destination === 'postgres';
describe.each(MODES)('%s into %s', (destination_sync_mode, destination) => {
  test('reads the last days again, loads late rows, and duplicates nothing', async () => {
    const created = await pipeline({ destination_sync_mode }, { destination });
    await run(created);
    await late(created);
    // Days 6 to 9 and the late row.
    expect((await run(created)).rows_read).toBe(5);
    expect(await copied(created)).toEqual([...WITH_LATE, '99 late']);
    expect((await run(created)).rows_read).toBe(5);
    expect(await copied(created)).toEqual([...WITH_LATE, '99 late']);
  });

  if (isFirst(destination))
    test('never moves its cursor back, even when the last days are empty', async () => {
      const created = await pipeline({ destination_sync_mode }, { destination });
      await run(created);
      const cursor = await cursorOf(created);
      await sql.unsafe(`delete from ${created.table} where id > 6`);
      for (const _ of [1, 2, 3]) await run(created);
      expect(await cursorOf(created)).toBe(cursor);
      await sql.unsafe(`insert into ${created.table} values (50, 'new', '2026-03-20')`);
      expect((await run(created)).rows_read).toBe(2);
    });

  if (destination_sync_mode === 'append' || isFirst(destination))
    test('works with a date cursor', async () => {
      const created = await pipeline({ destination_sync_mode }, { destination, type: 'date' });
      await run(created);
      await late(created);
      expect((await run(created)).rows_read).toBe(5);
      expect(await copied(created)).toEqual([...WITH_LATE, '99 late']);
    });

  if (isFirst(destination))
    test('prefers the days of the stream over those of the connection', async () => {
      const created = await pipeline({ destination_sync_mode, backfill_days: 0 }, { destination });
      await run(created);
      await late(created);
      expect((await run(created)).rows_read).toBe(0);
    });
});

test('a run that would append rows twice warns that it has no lookback window', async () => {
  const created = await pipeline({ destination_sync_mode: 'append' }, { destination: 'file' });
  await run(created);
  await late(created);
  const stream = await run(created);
  expect(stream.rows_read).toBe(0);
  expect(stream.warnings).toMatchObject([{ code: 'look_back_skipped' }]);
});

test('a cursor that is not a date has no lookback window', async () => {
  const created = await pipeline({ destination_sync_mode: 'append_dedup', cursor_field: ['id'] });
  await run(created);
  expect((await run(created)).rows_read).toBe(0);
});
