import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionStreams } from '../../db/schema/index.ts';
import { startWorker } from '../../server/engine/handlers.ts';
import { daysBefore } from '../../server/engine/look-back.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';

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

let counter = 0;
async function pipeline(
  stream: Partial<typeof connectionStreams.$inferInsert>,
  options: { days?: number; destination?: string; type?: string } = {},
) {
  const table = `t${++counter}`;
  const type = options.type ?? 'timestamptz';
  await sql.unsafe(`create table ${table} (id int primary key, note text, at ${type} not null);
    insert into ${table} select i, 'first', '2026-03-01'::${type} + make_interval(days => i) from generate_series(0, 9) i`);
  const made = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(database.url) },
    destination:
      options.destination === 'file'
        ? { name: 'file', parameters: { path: table, format: 'jsonl' } }
        : { name: 'postgres', parameters: postgresParameters(database.url) },
    only: [table],
    connection: { destination_schema: 'copy', backfill_days: options.days ?? 3 },
    stream: { sync_mode: 'incremental', cursor_field: ['at'], primary_key: [['id']], ...stream },
  });
  return { ...made, table };
}
type Made = Pipeline & { table: string };

async function run(made: Made) {
  const id = await made.start();
  expect((await runEnded(service, id)).status).toBe('succeeded');
  return (await getStreamRuns(service, id))[0]!;
}
const cursorOf = async ({ connection }: Made) => {
  const [row] = await service.deps.db
    .select()
    .from(connectionStreams)
    .where(eq(connectionStreams.connection_id, connection.id));
  return row!.state?.cursor;
};
const copied = async ({ table }: Made) =>
  (await sql.unsafe(`select id, note from copy.${table} order by id, note`)).map(({ id, note }) => `${id} ${note}`);

/** One row within three days of the cursor and one before change, and one comes late; the cursor of none of them grows. */
const late = ({ table }: Made) =>
  sql.unsafe(`update ${table} set note = 'second' where id in (2, 7);
    insert into ${table} values (99, 'late', '2026-03-08')`);
const WITH_LATE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => `${id} ${id === 7 ? 'second' : 'first'}`);

describe.each(['append', 'append_dedup'] as const)('%s', (destination_sync_mode) => {
  test('reads the last days again, takes in what came late, and doubles nothing', async () => {
    const made = await pipeline({ destination_sync_mode });
    await run(made);
    await late(made);
    // Days 6 to 9 and the late one.
    expect((await run(made)).rows_read).toBe(5);
    expect(await copied(made)).toEqual([...WITH_LATE, '99 late']);
    expect((await run(made)).rows_read).toBe(5);
    expect(await copied(made)).toEqual([...WITH_LATE, '99 late']);
  });

  test('never moves its cursor back, though the last days are empty now', async () => {
    const made = await pipeline({ destination_sync_mode });
    await run(made);
    const cursor = await cursorOf(made);
    await sql.unsafe(`delete from ${made.table} where id > 6`);
    for (const _ of [1, 2, 3]) await run(made);
    expect(await cursorOf(made)).toBe(cursor);
    await sql.unsafe(`insert into ${made.table} values (50, 'new', '2026-03-20')`);
    expect((await run(made)).rows_read).toBe(2);
  });

  test('a date as the cursor', async () => {
    const made = await pipeline({ destination_sync_mode }, { type: 'date' });
    await run(made);
    await late(made);
    expect((await run(made)).rows_read).toBe(5);
    expect(await copied(made)).toEqual([...WITH_LATE, '99 late']);
  });

  test('days of the stream go before those of the connection', async () => {
    const made = await pipeline({ destination_sync_mode, backfill_days: 0 });
    await run(made);
    await late(made);
    expect((await run(made)).rows_read).toBe(0);
  });
});

test('where rows would be appended twice, the run says that it does not look back', async () => {
  const made = await pipeline({ destination_sync_mode: 'append' }, { destination: 'file' });
  await run(made);
  await late(made);
  const stream = await run(made);
  expect(stream.rows_read).toBe(0);
  expect(stream.warnings).toMatchObject([{ code: 'look_back_skipped' }]);
});

test('a cursor that is no date is read on from as it is', async () => {
  const made = await pipeline({ destination_sync_mode: 'append_dedup', cursor_field: ['id'] });
  await run(made);
  expect((await run(made)).rows_read).toBe(0);
});
