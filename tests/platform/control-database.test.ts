import { afterAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { startClock } from '../../db/clock.ts';
import { openDatabase } from '../../db/index.ts';
import { until } from '../support/until.ts';
import { testServerUrl } from '../support/postgres.ts';

const url = await testServerUrl('postgres');
const admin = postgres(url, { max: 1, onnotice: () => {} });
const database = openDatabase(url, { max: 1 });
afterAll(async () => {
  await database.close();
  await admin.end();
});

/** As when the server restarts: the connection ends between two statements of a transaction. */
async function endConnection(pid: number): Promise<void> {
  await admin`select pg_terminate_backend(${pid}, 5000)`;
}

const pidOf = (rows: Record<string, unknown>[]) => Number(rows[0]?.pid);
const SELECT_PID = sql`select pg_backend_pid() as pid`;

describe('a connection closed by the server during a transaction', () => {
  test('fails the transaction, while process and pool keep working', async () => {
    for (let round = 0; round < 20; round += 1) {
      const lost = database.db.transaction(async (tx) => {
        await endConnection(pidOf(await tx.execute(SELECT_PID)));
        if (round % 2 === 0) await new Promise(setImmediate);
        await tx.execute(sql`select 1`);
      });
      await expect(lost).rejects.toThrow();
      expect(pidOf(await database.db.execute(SELECT_PID))).toBeGreaterThan(0);
    }
  });

  test('never runs later statements outside the transaction', async () => {
    const table = `outside_${crypto.randomUUID().replaceAll('-', '')}`;
    const reconnected = Promise.withResolvers<void>();
    const statements: Promise<unknown>[] = [];
    const lost = database.db.transaction(async (tx) => {
      await endConnection(pidOf(await tx.execute(SELECT_PID)));
      await tx.execute(sql`select 1`).catch(() => {});
      await reconnected.promise;
      const late = tx.execute(sql.raw(`create table ${table} (id int)`));
      statements.push(
        late.then(
          () => 'ran',
          () => 'refused',
        ),
      );
      await late;
    });
    await expect(lost).rejects.toThrow();
    await database.db.execute(SELECT_PID);
    reconnected.resolve();
    await until(() => statements.length === 1);
    expect(await statements[0]).toBe('refused');
    expect(await admin`select to_regclass(${table}) as found`).toMatchObject([{ found: null }]);
  });

  test('rejects queries on a reserved connection, and releases its slot', async () => {
    const pool = postgres(url, { max: 1, onnotice: () => {} });
    const reserved = await pool.reserve();
    await endConnection(pidOf(await reserved`select pg_backend_pid() as pid`));
    await expect(reserved`select 1`.execute()).rejects.toThrow();
    await expect(reserved`select 1`.execute()).rejects.toThrow('CONNECTION_CLOSED');
    reserved.release();
    expect(pidOf(await pool`select pg_backend_pid() as pid`)).toBeGreaterThan(0);
    await pool.end();
  });
});

test('queries one after the other share a connection, also after several at once', async () => {
  const pool = openDatabase(url, { max: 4 });
  const ask = async () => pidOf(await pool.db.execute(SELECT_PID));
  const together = new Set(await Promise.all([ask(), ask(), ask(), ask()]));
  const alone = new Set<number>();
  for (let at = 0; at < 4; at += 1) alone.add(await ask());
  await pool.close();
  expect([together.size, alone.size]).toEqual([4, 1]);
});

test('connections of a pool ask for types once, and all of them read arrays', async () => {
  const asked: string[] = [];
  const pool = postgres(url, { max: 4, debug: (_connection, query) => asked.push(query) });
  const ask = async () => (await pool`select pg_backend_pid() as pid, array[1, 2] as list`)[0];
  await ask();
  const rows = await Promise.all([ask(), ask(), ask(), ask()]);
  await pool.end();
  expect(new Set(rows.map((row) => row?.pid)).size).toBe(4);
  expect(rows.map((row) => row?.list)).toEqual(Array.from({ length: 4 }, () => [1, 2]));
  expect(asked.filter((query) => query.includes('typarray'))).toHaveLength(1);
});

test.each([true, false])('every connection of a pool can be reserved, with fetch_types %p', async (fetch_types) => {
  const pool = postgres(url, { max: 2, fetch_types });
  const reserved = [await pool.reserve(), await pool.reserve()];
  const pids = await Promise.all(reserved.map(async (one) => (await one`select pg_backend_pid() as pid`)[0]!.pid));
  expect(new Set(pids).size).toBe(2);
  for (const one of reserved) one.release();
  await pool.end();
});

test('the clock of the database is read again and again while work waits for its server', async () => {
  let reads = 0;
  const askTime: typeof database.askTime = (options) => {
    reads += 1;
    return database.askTime(options);
  };
  const clock = await startClock({ ...database, askTime }, { unresponsive_after_ms: 10_000, log: { warn: () => {} } });
  const ended = Promise.withResolvers<void>();
  const working = database.db.transaction(() => ended.promise);
  await until(() => reads >= 3);
  ended.resolve();
  await working;
  await clock.stop();
});
