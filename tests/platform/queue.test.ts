import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import pg from 'pg';
import { openDatabase } from '../../db/index.ts';
import { prepareRepeated } from '../../server/queue/prepare-statements.ts';
import { openLog } from '../../server/platform/log.ts';
import { openQueue } from '../../server/queue/boss.ts';
import { ALL_JOBS, executeStream } from '../../server/queue/jobs.ts';
import { renewStatistics } from '../../server/queue/renew-statistics.ts';
import { until } from '../support/until.ts';
import { createPlainDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createPlainDatabase();
});
afterAll(() => database.drop());
beforeEach(() => {
  pool = new pg.Pool({ connectionString: database.url, max: 1 });
});
afterEach(() => pool.end());

/** As pg-boss uses its pool, of one connection. */
const preparing = () => {
  const db = { executeSql: (text: string, values?: unknown[]) => pool.query(text, values) };
  prepareRepeated(db);
  return (text: string, values?: unknown[]) => db.executeSql(text, values);
};
const preparedTexts = async () =>
  (await pool.query('select statement from pg_prepared_statements order by 1')).rows.map(({ statement }) => statement);

test('a statement that comes again is prepared once, with and without values', async () => {
  const execute = preparing();
  for (const n of [1, 2, 3]) {
    expect((await execute('select $1::int as n', [n])).rows).toEqual([{ n }]);
    expect((await execute('select 7 as n', [])).rows).toEqual([{ n: 7 }]);
    expect((await execute(`select ${n} as once`, [])).rows).toEqual([{ once: n }]);
  }
  expect(await preparedTexts()).toEqual(['select $1::int as n', 'select 7 as n']);
});

/** Payloads of the last release. Replace them with those of the next one when that is made. */
const RELEASED: Record<string, object> = {
  execute_stream: { stream_run_id: 'id' },
  keep_snapshot: { connection_run_id: 'id' },
  publish_tables: { connection_run_id: 'id' },
  execute_task: { task_id: 'id' },
  deliver_action: { delivery_id: 'id' },
  verify_connection: { verification_id: 'id' },
  report_lineage: { connection_run_id: 'id', stage: 'end', tries: 1 },
};

test.each(Object.entries(RELEASED))('%s: jobs pass between this version and the last release', (name, payload) => {
  const job = ALL_JOBS.find((one) => one.name === name);
  // What the release sends is taken here, and what is sent here has all that the release reads.
  expect(job?.payload.safeParse(payload)).toEqual({ success: true, data: payload as never });
});

test('several statements in one text pass as they are', async () => {
  const execute = preparing();
  for (let round = 0; round < 3; round += 1) await execute('begin; select 1; commit', []);
  await execute('select 1; select 2');
  expect(await preparedTexts()).toEqual([]);
});

test('a statement whose result has changed, or that the server has lost, is sent again', async () => {
  const execute = preparing();
  await pool.query('create table jobs (id int); insert into jobs values (1)');
  const all = () => execute('select * from jobs', []);
  for (let round = 0; round < 3; round += 1) expect((await all()).rows).toEqual([{ id: 1 }]);
  await pool.query('alter table jobs alter id type text');
  for (let round = 0; round < 3; round += 1) expect((await all()).rows).toEqual([{ id: '1' }]);
  await pool.query('deallocate all');
  for (let round = 0; round < 3; round += 1) expect((await all()).rows).toEqual([{ id: '1' }]);
  expect(await preparedTexts()).toEqual(['select * from jobs']);
});

test('other errors are those of the statement', async () => {
  const execute = preparing();
  for (let round = 0; round < 3; round += 1) {
    await expect(execute('select 1 / $1::int', [0])).rejects.toMatchObject({ code: '22012' });
  }
});

test('a start brings the settings of a queue up to date, and changes nothing otherwise', async () => {
  const start = async () => {
    const queue = await openQueue({ url: database.url, db: null, log: openLog('silent'), supervise: false });
    await queue.stop();
  };
  const stored = async () =>
    (await pool.query('select retry_limit, updated_on from pgboss.queue where name = $1', [executeStream.name]))
      .rows[0];
  await start();
  const first = await stored();
  await start();
  expect(await stored()).toEqual(first);
  await pool.query('update pgboss.queue set retry_limit = 1 where name = $1', [executeStream.name]);
  await start();
  expect(await stored()).toMatchObject({ retry_limit: executeStream.retry_limit });
});

test('statistics of the jobs are renewed whenever their table has doubled', async () => {
  const { db, close } = openDatabase(database.url, { max: 2 });
  const queue = await openQueue({ url: database.url, db, log: openLog('silent'), supervise: true });
  const send = (count: number) =>
    queue.sendAll(
      db,
      executeStream,
      Array.from({ length: count }, () => ({ payload: { stream_run_id: crypto.randomUUID() } })),
    );
  const pages = async () =>
    (
      await pool.query(`
        select relpages as known, (pg_relation_size(oid) / current_setting('block_size')::int)::int as present
        from pg_class where oid = 'pgboss.job_common'::regclass`)
    ).rows[0];
  const isKnown = async () => {
    const { known, present } = await pages();
    return present <= 2 * known;
  };
  try {
    await pool.query('alter table pgboss.job_common set (autovacuum_enabled = false)');
    await send(2000);
    await until(isKnown);
    await pool.query('analyze pgboss.job_common');
    const before = await pages();
    await send(200);
    await renewStatistics(db);
    expect((await pages()).known).toBe(before.known);
    await send(2500);
    expect((await pages()).present).toBeGreaterThan(2 * before.known);
    await until(isKnown);
  } finally {
    await queue.stop();
    await close();
  }
});
