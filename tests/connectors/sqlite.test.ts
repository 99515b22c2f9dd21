import { afterEach, beforeEach, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Batch, StreamState } from '../../server/connectors/contract/connector.ts';
import { ConnectorError } from '../../server/connectors/contract/errors.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { readBatches, requestOf } from './reading.ts';
import { type SqlitePlace, sqlitePlace, typesOf } from './sqlite-support.ts';
import { limitHangs } from '../support/hangs.ts';

limitHangs();

let place: SqlitePlace;
beforeEach(async () => {
  place = await sqlitePlace();
});
afterEach(() => place.close());

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'nothing',
    (error: unknown) => (error instanceof ConnectorError ? `${error.type} ${error.code}` : String(error)),
  );

test('every digit, byte and character is kept, and NULL differs from the empty string', async () => {
  place.write.run(`create table t (big integer, ratio real, exact decimal(10, 2), name text, data blob, flag boolean,
    day date, local datetime, instant timestamp, doc json)`);
  place.write.run(`insert into t values
    (9223372036854775807, 0.1, 12.345, '', x'', 1, '2024-02-29', '2026-01-31 23:59:59.123456', '2026-01-31T23:59:59.123Z', '{"a":1e400}'),
    (-9223372036854775808, 1e300, 9007199254740993, 'é 漢字 🦄 ' || char(10) || '\\N', x'00ff5c', 0, '0001-01-01', '2026-01-31 00:00:00', '2026-01-31T00:00:00.000Z', '[1]'),
    (null, null, null, null, null, null, null, null, null, null)`);
  expect(typesOf(await place.stream('t'))).toEqual({
    big: 'integer',
    ratio: 'number',
    exact: 'number',
    name: 'string',
    data: 'binary',
    flag: 'boolean',
    day: 'date',
    local: 'timestamp',
    instant: 'timestamp_tz',
    doc: 'json',
  });
  expect(await place.read('t')).toEqual([
    [
      '9223372036854775807',
      '0.1',
      '12.345',
      '',
      '\\x',
      'true',
      '2024-02-29',
      '2026-01-31 23:59:59.123456',
      '2026-01-31 23:59:59.123+00',
      '{"a":1e400}',
    ],
    [
      '-9223372036854775808',
      '1e+300',
      '9007199254740993',
      'é 漢字 🦄 \n\\N',
      '\\x00ff5c',
      'false',
      '0001-01-01',
      '2026-01-31 00:00:00',
      '2026-01-31 00:00:00.000+00',
      '[1]',
    ],
    Array(10).fill(null),
  ]);
});

test('a column with a value outside its declared type is read as a type that holds all values', async () => {
  place.write.run(
    `create table t (whole integer, number real, flag boolean, day date, at datetime, mixed timestamp, data blob, doc json, free)`,
  );
  place.write.run(
    `insert into t values (1, 1.5, 1, '2026-01-01', '2026-01-01 00:00:00', '2026-01-01 00:00:00', x'00', '{}', 1)`,
  );
  place.write.run(
    `insert into t values ('abc', '1,5', 2, '2026-02-31', '2026-01-01 24:00:00', '2026-01-01T00:00:00', 'text', '{', x'ff')`,
  );
  expect(typesOf(await place.stream('t'))).toEqual({
    whole: 'string',
    number: 'string',
    flag: 'integer',
    day: 'string',
    at: 'string',
    mixed: 'string',
    data: 'string',
    doc: 'string',
    free: 'string',
  });
  expect(await place.read('t')).toEqual([
    ['1', '1.5', '1', '2026-01-01', '2026-01-01 00:00:00', '2026-01-01 00:00:00', '\\x00', '{}', '1'],
    ['abc', '1,5', '2', '2026-02-31', '2026-01-01 24:00:00', '2026-01-01T00:00:00', 'text', '{', '\\xff'],
  ]);
});

test('a text that is not UTF-8 is refused with its place; U+FFFD itself is a character like any other', async () => {
  place.write.run(
    "create table bytes (id integer, note text); insert into bytes values (1, 'a' || char(65533)), (2, char(65279) || 'b')",
  );
  expect(await place.read('bytes')).toEqual([
    ['1', 'a\ufffd'],
    ['2', '\ufeffb'],
  ]);
  for (const bytes of ['f09f98', 'ff', 'eda080', '61c3']) {
    place.write.run(`insert into bytes values (3, cast(x'${bytes}' as text))`);
    await expect(place.read('bytes')).rejects.toThrow(/^bytes: row 3: note has ".*", which is not UTF-8$/);
    place.write.run('delete from bytes where id = 3');
  }
});

test('a value that no longer fits the discovered type is a schema change, never altered', async () => {
  place.write.run('create table t (id integer); insert into t values (1)');
  const request = requestOf(await place.stream('t'));
  place.write.run("insert into t values ('x')");
  expect(await codeOf(readBatches(sqliteSource, place.context(), request))).toBe('schema_changed value_does_not_fit');
  expect(await place.read('t')).toEqual([['1'], ['x']]);
});

test('keys, views, generated columns, tables without rowid and unusual names', async () => {
  place.write.run(`create table "Ta""b'le 表" ("I ""d" text, n integer, twice integer as (n * 2) stored, primary key (n, "I ""d")) without rowid;
    insert into "Ta""b'le 表" ("I ""d", n) values ('a', 1); create view v as select n, n || '!' as shout from "Ta""b'le 表";
    create view broken as select * from nowhere`);
  const streams = await sqliteSource.discover(place.context());
  expect(streams.map(({ name, source_defined_primary_key }) => [name, source_defined_primary_key])).toEqual([
    ['Ta"b\'le 表', [['n'], ['I "d']]],
    ['v', null],
  ]);
  expect(await place.read('Ta"b\'le 表')).toEqual([['a', '1', '2']]);
  expect(await place.read('v')).toEqual([['1', '1!']]);
});

test('rows that share a cursor are neither lost nor duplicated, wherever a read is interrupted', async () => {
  place.write.run('create table t (id integer primary key, at datetime)');
  const insert = place.write.prepare('insert into t values (?, ?)');
  const add = (from: number, to: number) =>
    place.write.transaction(() => {
      for (let id = from; id < to; id++)
        insert.run(id, id % 10 ? `2026-01-01 00:00:${String(Math.floor(id / 1000)).padStart(2, '0')}` : null);
    })();
  add(0, 12_000);
  const request = requestOf(await place.stream('t'), { sync_mode: 'incremental', cursor_field: ['at'] });
  const seen: string[] = [];
  let state: StreamState | null = null;
  const readSome = async (batches: number) => {
    for await (const batch of sqliteSource.read(place.context(), { ...request, state })) {
      if (!batch.state) continue;
      seen.push(...batch.rows.flatMap(([id]) => (Number(id) % 10 ? [String(id)] : [])));
      state = JSON.parse(JSON.stringify(batch.state)) as StreamState;
      if (--batches === 0) return;
    }
  };
  await readSome(2);
  await readSome(1);
  add(12_000, 30_000);
  await readSome(2);
  await readSome(100);
  const wanted = Array.from({ length: 30_000 }, (_, id) => id).filter((id) => id % 10);
  expect(seen.map(Number).toSorted((a, b) => a - b)).toEqual(wanted);
  // Each read, since none but the first one returns such rows.
  expect(place.warnings).toEqual(Array.from({ length: 4 }, () => 'null_cursor'));
});

test('a date window returns exactly its days, in every date format', async () => {
  place.write.run('create table t (day date, spaced datetime, lettered datetime, instant datetime, millis datetime)');
  for (const [day, time] of [
    ['01', '23:59:59'],
    ['02', '00:00:00'],
    ['02', '23:59:59'],
    ['03', '00:00:00'],
  ]) {
    const [date, t] = [`2026-03-${day}`, time];
    place.write.run('insert into t values (?, ?, ?, ?, ?)', [
      date,
      `${date} ${t}`,
      `${date}T${t}`,
      `${date}T${t}Z`,
      `${date}T${t}.000Z`,
    ]);
  }
  const window = { start: '2026-03-02', end: '2026-03-03T00:00:00.000Z' };
  for (const cursor of ['day', 'spaced', 'lettered', 'instant', 'millis']) {
    for (const sync_mode of ['incremental', 'full_refresh'] as const) {
      const rows = await place.read('t', { sync_mode, cursor_field: [cursor], window });
      expect(rows.map((row) => row[1])).toEqual(['2026-03-02 00:00:00', '2026-03-02 23:59:59']);
    }
  }
});

test('a read sees one snapshot of a database in WAL mode, despite concurrent writes and checkpoints', async () => {
  place.write.run('pragma journal_mode = wal');
  place.write.run('create table t (id integer primary key)');
  place.write.run(
    'with recursive s(n) as (select 1 union all select n + 1 from s where n < 20000) insert into t select n from s',
  );
  let rows = 0;
  for await (const batch of sqliteSource.read(place.context(), requestOf(await place.stream('t')))) {
    rows += batch.rows.length;
    place.write.run('delete from t where id > 10000; insert into t values (50000 + abs(random()) % 1000000)');
  }
  expect(rows).toBe(20_000);
});

test('a shared snapshot lets other work through while it passes over rows before the window', async () => {
  place.write.run('create table t (id integer, day date, note text)');
  place.write.run(`with recursive s(n) as (select 1 union all select n + 1 from s where n < 40000)
    insert into t select n, case when n > 20000 then '2026-01-01' end, '\ufffd' from s`);
  place.write.run("insert into t values (0, '2026-03-02', '\ufffd')");
  const ctx = place.context();
  const stream = await place.stream('t');
  const { snapshot, close } = await sqliteSource.keepSnapshot!(ctx, [stream], 1);
  let turns = 0;
  const turn = () => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const request = requestOf(stream, { cursor_field: ['day'], snapshot, window: { start: '2026-03-01', end: null } });
  const batches = await readBatches(sqliteSource, ctx, request);
  clearImmediate(next);
  await close();
  expect(batches.flatMap(({ rows }) => rows)).toEqual([['0', '2026-03-02', '\ufffd']]);
  // Every 5,000 rows: 4 times to the first date, 8 times to the row, and 8 times to check its text.
  expect(turns).toBeGreaterThanOrEqual(20);
});

test('waits for a temporary lock without blocking the process', async () => {
  place.write.run('create table t (id integer); insert into t values (1)');
  place.write.run('begin exclusive');
  let turns = 0;
  const ticking = setInterval(() => {
    turns += 1;
    if (turns === 5) place.write.run('commit');
  }, 10);
  expect(await place.read('t')).toEqual([['1']]);
  clearInterval(ticking);
  expect(turns).toBeGreaterThanOrEqual(5);
});

test('a database that stays locked is a retryable error', async () => {
  place.write.run('create table t (id integer)');
  place.write.run('begin exclusive');
  expect(await codeOf(sqliteSource.check(place.context()))).toBe('transient_error database_locked');
});

test('each failure has its own error', async () => {
  await Bun.write(join(place.filesRoot, 'text.db'), 'this is no database '.repeat(100));
  await symlink('/etc', join(place.filesRoot, 'out'));
  const check = (path: string) => codeOf(sqliteSource.check(place.context(undefined, path)));
  expect(await check('none.db')).toBe('config_error file_not_found');
  expect(await check('text.db')).toBe('config_error not_a_database');
  expect(await check('out/passwd')).toBe('config_error path_outside_root');
  expect(await check('../data.db')).toBe('config_error path_outside_root');
  place.write.run('create table t (id integer, name text); insert into t values (1, null)');
  const request = requestOf(await place.stream('t'));
  const read = () => codeOf(readBatches(sqliteSource, place.context(), request));
  place.write.run('alter table t rename column name to label');
  expect(await read()).toBe('schema_changed column_missing');
  place.write.run('drop table t');
  expect(await read()).toBe('schema_changed table_missing');
});

test('a large read does not block other work', async () => {
  place.write.run('create table t (id integer primary key, name text)');
  place.write.run(
    "with recursive s(n) as (select 1 union all select n + 1 from s where n < 100000) insert into t select n, 'name' from s",
  );
  const stream = await place.stream('t');
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 0);
  const batches: Batch[] = await readBatches(sqliteSource, place.context(), requestOf(stream));
  clearInterval(ticking);
  expect(batches.length).toBe(20);
  expect(turns).toBeGreaterThan(5);
});

test('the file is opened for reading only', async () => {
  place.write.run('create table t (id integer)');
  place.write.close();
  const before = await Bun.file(join(place.filesRoot, 'data.db')).bytes();
  await sqliteSource.discover(place.context());
  expect(await Bun.file(join(place.filesRoot, 'data.db')).bytes()).toEqual(before);
  place.write = new Database(join(place.filesRoot, 'data.db'));
});
