import { afterEach, beforeEach, expect, test } from 'bun:test';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConnectorContext, StreamSchema } from '../../server/connectors/contract/connector.ts';
import type { DuckDbSourceConfig } from '../../server/connectors/duckdb/connection/settings.ts';
import { duckDbSource } from '../../server/connectors/duckdb/source.ts';
import { ConnectorError } from '../../server/connectors/contract/errors.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { readBatches, requestOf } from './reading.ts';
import { limitHangs } from '../support/hangs.ts';
import { contextOf } from './places.ts';

limitHangs();

let place: Awaited<ReturnType<typeof duckDbFolder>>;
beforeEach(async () => {
  place = await duckDbFolder();
});
afterEach(() => place.close());

const context = (path = 'data.duckdb') =>
  contextOf(
    duckDbSource,
    { filesRoot: place.filesRoot },
    { settings: { path } },
  ) as ConnectorContext<DuckDbSourceConfig>;
const sql = (...statements: string[]) => onDuckDb(join(place.filesRoot, 'data.duckdb'), ...statements);
const streamNamed = async (name: string) =>
  (await duckDbSource.discover(context())).find((one) => one.name === name) as StreamSchema;
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'nothing',
    (error: unknown) => (error instanceof ConnectorError ? `${error.type} ${error.code}` : String(error)),
  );

test('a view that reads other local files is rejected', async () => {
  await sql("create view outside as select content from read_text('/etc/hostname')");
  const request = requestOf(await streamNamed('outside'));
  expect(await codeOf(readBatches(duckDbSource, context(), request))).toBe('config_error refused_by_database');
});

test('U+FEFF at the start of a text is kept', async () => {
  await sql(`create table marks as select chr(65279) || 'a' as short, chr(65279) || repeat('b', 20) as long`);
  const [batch] = await readBatches(duckDbSource, context(), requestOf(await streamNamed('marks')));
  expect(batch?.rows).toEqual([['\ufeffa', `\ufeff${'b'.repeat(20)}`]]);
});

test('a date window returns exactly its days, for every date type', async () => {
  await sql(`create table t as select i as id, (timestamptz '2026-03-01 23:59:59.999999+00' + i * interval 12 hour) as zoned,
    zoned at time zone 'UTC' as local, local::date as day from range(5) t(i)`);
  const stream = await streamNamed('t');
  const window = { start: '2026-03-02', end: '2026-03-03T00:00:00.000Z' };
  for (const cursor of ['zoned', 'local', 'day']) {
    const request = requestOf(stream, { sync_mode: 'incremental', cursor_field: [cursor], window });
    const rows = (await readBatches(duckDbSource, context(), request)).flatMap((batch) => batch.rows);
    expect(rows.map(([id]) => id)).toEqual(['1', '2']);
  }
});

test('each failure has its own error', async () => {
  await symlink('/etc', join(place.filesRoot, 'out'));
  await sql('create table t as select 1 as id, 2 as more');
  const check = (path: string) => codeOf(duckDbSource.check(context(path)));
  expect(await check('none.duckdb')).toBe('config_error file_not_found');
  expect(await check('text.duckdb')).toBe('config_error not_a_database');
  expect(await check('out/passwd')).toBe('config_error path_outside_root');
  const request = requestOf(await streamNamed('t'));
  await sql('alter table t rename column more to less');
  expect(await codeOf(readBatches(duckDbSource, context(), request))).toBe('schema_changed column_missing');
  await sql('drop table t');
  expect(await codeOf(readBatches(duckDbSource, context(), request))).toBe('schema_changed table_missing');
});

test('wide rows arrive in batches of about a megabyte, each row once', async () => {
  await sql(
    'create table wide as select i as id, repeat(chr((97 + i % 26)::int), 30_000) as note from range(500) r(i)',
  );
  const batches = await readBatches(duckDbSource, context(), requestOf(await streamNamed('wide')));
  expect(Math.max(...batches.map(({ bytes }) => bytes))).toBeLessThan(1_100_000);
  const rows = batches.flatMap((batch) => batch.rows);
  expect(rows.map(([id]) => Number(id))).toEqual(Array.from({ length: 500 }, (_, id) => id));
  expect(rows.every(([id, note]) => note === String.fromCharCode(97 + (Number(id) % 26)).repeat(30_000))).toBe(true);
});

/** Of which 2,048 at once do not fit into the memory that the engine begins with. */
test.each(['full_refresh', 'incremental'] as const)(
  '%s: rows of any width, before narrow ones and between deleted ones',
  async (sync_mode) => {
    await sql(
      `create table mixed as select i as id, case when i // 140 = 0 then repeat(chr((97 + i % 26)::int), 1_000_000) end as note
       from range(6000) r(i)`,
      'delete from mixed where id % 7 = 0',
    );
    const ids: number[] = [];
    const request = requestOf(await streamNamed('mixed'), { sync_mode, cursor_field: ['id'] });
    for await (const { rows } of duckDbSource.read(context(), request)) {
      for (const [id, note] of rows) {
        ids.push(Number(id));
        const length = Math.floor(Number(id) / 140) === 0 ? 1_000_000 : null;
        expect([note?.length ?? null, note?.charCodeAt(0) ?? 97 + (Number(id) % 26)]).toEqual([
          length,
          97 + (Number(id) % 26),
        ]);
      }
    }
    expect(ids).toEqual(Array.from({ length: 6000 }, (_, id) => id).filter((id) => id % 7 !== 0));
  },
);

test('a table in which all rows are wide', async () => {
  await sql("create table all_wide as select i as id, repeat('x', 1_000_000) as note from range(140) r(i)");
  const batches = await readBatches(duckDbSource, context(), requestOf(await streamNamed('all_wide')));
  const rows = batches.flatMap((batch) => batch.rows);
  expect(rows.map(([id]) => Number(id))).toEqual(Array.from({ length: 140 }, (_, id) => id));
  expect(rows.every(([, note]) => note?.length === 1_000_000)).toBe(true);
});

test('exceeding the memory limit is a clear error', async () => {
  await sql('create view heap as select list(repeat(i::varchar, 250_000)) as note from range(1000) r(i)');
  const request = requestOf(await streamNamed('heap'));
  expect(await codeOf(readBatches(duckDbSource, context(), request))).toBe('system_error out_of_memory');
});
