import { afterAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { openDatabase } from '../../db/index.ts';
import { pipelined } from '../../db/pipelined.ts';
import { isoInstant } from '../../db/schema/columns.ts';
import type { Db } from '../../db/types.ts';
import { testServerUrl } from '../support/postgres.ts';
import { until } from '../support/until.ts';

const url = await testServerUrl('postgres');
const admin = postgres(url, { max: 1, onnotice: () => {} });
const database = openDatabase(url, { max: 2 });
afterAll(async () => {
  await database.close();
  await admin.end();
});

const add = (tx: Db, value: number) => async () =>
  (await tx.execute(sql`insert into steps values (${value}) returning (select count(*)::int from steps) as before`))[0];

test('statements run in the order of their steps, whichever of them is prepared', async () => {
  await database.db.transaction(async (tx) => {
    await tx.execute(sql`create temporary table steps (value int) on commit drop`);
    for (let round = 0; round < 5; round += 1) {
      const counted = async () => (await tx.execute(sql.raw('select count(*)::int as before from steps')))[0];
      const answers = await pipelined(add(tx, 1), counted, add(tx, 2), add(tx, 3), counted);
      expect(answers.map((row) => row?.before)).toEqual([0, 1, 1, 2, 3].map((count) => count + 3 * round));
    }
  });
});

test('statements are sent while the first one waits, and see what was committed meanwhile', async () => {
  const table = `waited_${crypto.randomUUID().replaceAll('-', '')}`;
  await admin.unsafe(`create table ${table} (id int)`);
  const locked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holding = admin.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(4711)`;
    locked.resolve();
    await held.promise;
    await tx.unsafe(`insert into ${table} values (1)`);
  });
  await locked.promise;
  let sent = 0;
  const working = database.db.transaction((tx) => {
    const step = (text: string) => async () => {
      sent += 1;
      return tx.execute<{ seen: number }>(sql.raw(text));
    };
    return pipelined(
      step('select pg_advisory_xact_lock(4711)'),
      step(`select count(*)::int as seen from ${table}`),
      step('select 1'),
    );
  });
  await until(() => sent === 3);
  held.resolve();
  await holding;
  const [, [row]] = await working;
  expect(row?.seen).toBe(1);
  await admin.unsafe(`drop table ${table}`);
});

test('the error of the first step that fails is reported, and the transaction is rolled back', async () => {
  const refused = new Error('refused after its statement');
  const work = database.db.transaction((tx) =>
    pipelined(
      () => tx.execute(sql`select 1`),
      async () => {
        await tx.execute(sql`select 2`);
        throw refused;
      },
      () => tx.execute(sql`select 1 / 0`),
    ),
  );
  await expect(work).rejects.toBe(refused);
  expect((await database.db.execute(sql`select 1 as one`))[0]?.one).toBe(1);
});

test.each([
  '2026-01-01 00:00:00+00',
  '2026-01-01 23:59:59.1+00',
  '2026-01-01 23:59:59.12+00',
  '1999-12-31 23:59:59.123+00',
  '2026-01-01 00:00:00.5+02',
  '2026-01-01T00:00:00.5Z',
])('the instant %s is that of a Date', (text) => {
  expect(isoInstant(text)).toBe(new Date(text).toISOString());
});
