import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { followedTables } from '../support/followed-tables.ts';

const service = await testDeps();
const { call } = testApi(service);
const { source, target, dropSlots, logSource, follow, run, reset } = await followedTables(service, call);
afterEach(dropSlots);

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;
const told = ({ stream }: Json): string[] =>
  stream.warnings.map(
    ({ code, message }: Json) => `${code}: ${/^Partitions of sales were (.*?)\. /.exec(message)?.[1]}`,
  );
const sql = (text: string) => source.unsafe(text);

let counter = 0;
let schema = '';
beforeEach(async () => {
  schema = `parts_${++counter}`;
  await sql(`create schema ${schema}; set search_path = ${schema};
    create table sales (id int, day int, primary key (id, day)) partition by range (day);
    create table first partition of sales for values from (1) to (10);
    create table second partition of sales for values from (10) to (20);
    create table later (like sales including all); insert into later values (30, 30);
    insert into sales values (1, 1), (2, 11)`);
});

/** Of partitions, followed or read by a cursor, and loaded once. */
async function sales(stream: object = {}) {
  const source_id = await logSource({ schemas: [schema] });
  const connection = await follow('sales', { source_id, stream, connection: { destination_schema: schema } });
  const first = await run(connection);
  expect([first.status, first.stream.rows_loaded, told(first)]).toEqual(['succeeded', 2, []]);
  return connection;
}

const rows = async () => (await target.unsafe(`select id from ${schema}.sales order by 1`)).map(({ id }) => id);
const attach = () => sql(`alter table ${schema}.sales attach partition ${schema}.later for values from (30) to (40)`);

describe('partitions of a table whose log is followed', () => {
  test('one that is attached with rows is told of once; a reset reads them', async () => {
    const connection = await sales();
    await attach();
    const second = await run(connection);
    expect([second.status, told(second)]).toEqual(['succeeded', [`partitions_changed: attached (${schema}.later)`]]);
    expect(second.stream.warnings[0]!.message).toMatch(/neither read nor deleted.* reset the stream's cursor/);
    expect(told(await run(connection))).toEqual([]);
    expect(await rows()).toEqual([1, 2]);
    await reset(connection);
    expect(told(await run(connection))).toEqual([]);
    expect(await rows()).toEqual([1, 2, 30]);
  });

  test('one that is created as a partition, renamed, or analyzed needs no warning', async () => {
    const connection = await sales();
    await sql(`create table ${schema}.third partition of ${schema}.sales for values from (20) to (30);
      alter table ${schema}.second rename to renamed; insert into ${schema}.sales values (20, 20)`);
    await sql(`vacuum analyze ${schema}.sales`);
    const second = await run(connection);
    expect([second.status, told(second), await rows()]).toEqual(['succeeded', [], [1, 2, 20]]);
  });

  test.each([
    ['detached or dropped', 'first', 'alter table sales detach partition first'],
    ['detached or dropped', 'second', 'drop table second'],
    ['truncated or rewritten', 'first', 'truncate first'],
    [
      'truncated or rewritten',
      'third',
      `create unlogged table third partition of sales for values from (20) to (30); insert into sales values (3, 20);
       alter table third set logged`,
    ],
  ])('%s: %s is told of, and its rows stay', async (what, name, ddl) => {
    const connection = await sales();
    await sql(`set search_path = ${schema}; ${ddl}`);
    const second = await run(connection);
    expect([second.status, told(second)]).toEqual(['succeeded', [`partitions_changed: ${what} (${schema}.${name})`]]);
    expect([told(await run(connection)), await rows()]).toEqual([[], [1, 2]]);
  });

  test('a truncated table is in the log: its partitions are not told of', async () => {
    const connection = await sales();
    await sql(`truncate ${schema}.sales`);
    const second = await run(connection);
    expect([second.status, told(second), await rows()]).toEqual(['succeeded', [], []]);
  });

  test.each([
    ['an unlogged partition', 'create unlogged table third partition of sales for values from (20) to (30)'],
    [
      'an unlogged partition below another one',
      `create table tree partition of sales for values from (50) to (60) partition by range (day);
      create unlogged table leaf partition of tree for values from (50) to (60)`,
    ],
  ])('%s fails the stream until it is logged', async (_, ddl) => {
    const connection = await sales();
    await sql(`set search_path = ${schema}; ${ddl}; insert into sales values (3, 3)`);
    const failed = await run(connection);
    expect(failed.stream.error).toMatchObject({ code: 'table_not_logged', type: 'config_error' });
    const name = ddl.includes('leaf') ? 'leaf' : 'third';
    await sql(`alter table ${schema}.${name} set logged`);
    expect([(await run(connection)).status, await rows()]).toEqual(['succeeded', [1, 2, 3]]);
  });

  test('a subtree that is attached with its partitions is told of', async () => {
    const connection = await sales();
    await sql(`set search_path = ${schema}; create table tree (like sales including all) partition by range (day);
      create table leaf partition of tree for values from (50) to (60); insert into tree values (50, 50)`);
    await sql(`alter table ${schema}.sales attach partition ${schema}.tree for values from (50) to (60)`);
    expect(told(await run(connection))).toEqual([`partitions_changed: attached (${schema}.leaf)`]);
  });
});

const BY_CURSOR = { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', cursor_field: ['id'] };

test('of a table that is read by a cursor, only those that are attached are told of', async () => {
  await sql(`alter table ${schema}.sales replica identity nothing`);
  const connection = await sales(BY_CURSOR);
  await sql(`drop table ${schema}.second`);
  await attach();
  expect(told(await run(connection))).toEqual([`partitions_changed: attached (${schema}.later)`]);
});

test.each([
  ['followed', {}],
  ['read by a cursor', BY_CURSOR],
])('renamed values of enums in a table that is %s are told of once', async (how, stream) => {
  await sql(`set search_path = ${schema}; drop table sales, later; create type state as enum ('new', 'open', 'done');
    create domain progress as state; create type size as enum ('S', 'L');
    create table sales (id int primary key, state state, states state[], progress progress, size size);
    insert into sales values (1, 'open', '{open,done}', 'open', 'S'), (2, 'new', '{}', 'done', 'L')`);
  if (how === 'read by a cursor') await sql(`alter table ${schema}.sales replica identity nothing`);
  const connection = await sales({ ...stream, fields: [{ path: ['size'], selected: false }] });
  await sql(`set search_path = ${schema}; alter type state add value 'lost'; alter type size rename value 'S' to 'small';
    alter type state rename value 'open' to 'opened'; insert into sales values (3, 'opened', '{}', 'new', 'small')`);
  const second = await run(connection);
  expect(second.stream.warnings.map(({ code, message }: Json) => [code, /: (.*?)\. /.exec(message)![1]])).toEqual([
    ['enum_values_renamed', 'state (open to opened), states (open to opened), progress (open to opened)'],
  ]);
  expect((await run(connection)).stream.warnings).toEqual([]);
  await reset(connection);
  await run(connection);
  const [row] = await target.unsafe(`select state::text, states::text from ${schema}.sales where id = 1`);
  expect({ ...row }).toEqual({ state: 'opened', states: expect.stringContaining('opened') });
});
