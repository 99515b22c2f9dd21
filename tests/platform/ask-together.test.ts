import { afterAll, beforeAll, expect, test } from 'bun:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { askTogether } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import { createPlainDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let client: postgres.Sql;
let db: Db;
const sent: string[] = [];
beforeAll(async () => {
  database = await createPlainDatabase();
  client = postgres(database.url, { max: 2, onnotice: () => {} });
  db = drizzle(client, { logger: { logQuery: (text) => void sent.push(text) } });
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const ask = (name: string, query = sql`select ${name}::text`) => askTogether(db, { name, query: () => query });
const NUMBERS = {
  name: 'numbers',
  query: () => sql`select n from generate_series(1, ${sql.placeholder('last')}::int) n`,
};

test('questions of the same moment are one statement, with an answer each', async () => {
  sent.length = 0;
  const all = [ask('b'), ask('none', sql`select 1 where false`), askTogether(db, NUMBERS, { last: 3 }), ask('a')];
  expect(await Promise.all(all)).toEqual([['b'], [], [1, 2, 3], ['a']]);
  expect(sent).toHaveLength(1);
});

test('the same questions are the same statement, in any order and with other values', async () => {
  sent.length = 0;
  expect(await Promise.all([ask('a'), askTogether(db, NUMBERS, { last: 1 })])).toEqual([['a'], [1]]);
  expect(await Promise.all([askTogether(db, NUMBERS, { last: 2 }), ask('a')])).toEqual([[1, 2], ['a']]);
  expect(sent).toHaveLength(2);
  expect(sent[0]).toBe(sent[1]);
});

test('loops whose timers are due together ask together', async () => {
  sent.length = 0;
  const later = (name: string) => sleep(20).then(() => ask(name));
  expect(await Promise.all([later('a'), later('b'), later('c')])).toEqual([['a'], ['b'], ['c']]);
  expect(sent).toHaveLength(1);
});

test('a question that fails is reported by all that were asked with it, and by none after that', async () => {
  const asked = await Promise.allSettled([ask('a'), ask('wrong', sql`select 1 / 0`)]);
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await ask('a')).toEqual(['a']);
});
