import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, content, duckDbTarget, errorOf, load, open, place, row, sql } from './duckdb-target.ts';
import { batchOf, column } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

duckDbTarget();

describe('append_dedup', () => {
  const mode = 'append_dedup' as const;

  test('the row with the highest cursor wins, then the last to arrive; older rows change nothing', async () => {
    const cursor_column = 'at';
    const first = await load(
      { mode, cursor_column },
      batchOf([
        row(1, 'newest', '2024-03-01'),
        row(1, 'older', '2024-01-01'),
        row(2, 'a', '2024-01-01'),
        row(2, 'b', '2024-01-01'),
      ]),
      batchOf([row(3, 'no cursor', null), row(3, 'cursor', '2024-01-01')]),
    );
    expect(first).toMatchObject({ rows_loaded: 6, rows_updated: 0 });
    expect(await content()).toEqual([
      ['1', 'newest'],
      ['2', 'b'],
      ['3', 'cursor'],
    ]);
    const second = await load(
      { mode, cursor_column, fence: 2, stream_run_id: 'second' },
      batchOf([
        row(1, 'stale', '2024-02-01'),
        row(2, 'b', '2024-01-01'),
        row(3, 'newer', '2024-02-01'),
        row(4, 'new', '2024-01-01'),
      ]),
    );
    expect(second).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
    expect(await content()).toEqual([
      ['1', 'newest'],
      ['2', 'b'],
      ['3', 'newer'],
      ['4', 'new'],
    ]);
  });

  test('each checkpoint merges; counts are totals of the stream run, over attempts', async () => {
    const writer = await open({ mode });
    await writer.write(batchOf([row(1, 'a'), row(2, 'a')]));
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 2, rows_updated: 0 });
    await writer.write(batchOf([row(2, 'b')]));
    expect(await writer.checkpoint({ cursor: '2' })).toMatchObject({ rows_loaded: 3, rows_updated: 1 });
    await writer.write(batchOf([row(9, 'lost')]));
    await writer.abort();
    const retry = await open({ mode, fence: 2 });
    expect(retry.committed).toMatchObject({
      state: { cursor: '2' },
      state_version: 2,
      counts: { rows_loaded: 3, rows_updated: 1 },
    });
    await retry.write(batchOf([row(3, 'c')]));
    expect(await retry.finish({ cursor: '3' })).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
    expect(await content()).toEqual([
      ['1', 'a'],
      ['2', 'b'],
      ['3', 'c'],
    ]);
  });

  test('numbers of any precision are ordered as numbers', async () => {
    const columns = [column('id', 'integer'), column('name', 'string'), column('at', 'number')];
    const more = { mode, columns, cursor_column: 'at' };
    await load(more, batchOf([row(1, 'newer', '10'), row(1, 'older', '9')]));
    expect(await load({ ...more, fence: 2 }, batchOf([row(1, 'older', '9.5')]))).toMatchObject({ rows_updated: 0 });
    expect(await content()).toEqual([['1', 'newer']]);
  });

  test('an existing table gets what it lacks; one with doubled keys is refused', async () => {
    await sql(`create table t (NAME varchar, id bigint)`, `insert into t values ('old', 1), ('stays', 7)`);
    await load({ mode }, batchOf([row(1, 'new', '2024-01-01')]));
    expect(await content()).toEqual([
      ['1', 'new'],
      ['7', 'stays'],
    ]);
    await sql(`create table twice as select * from t union all select * from t`);
    expect(await codeOf(open({ mode, table: 'twice', stream_id: 'other' }))).toBe('config_error key_not_unique');
  });

  test('a row without its key is an error of the data that names row and column, and nothing of it stays', async () => {
    const error = await errorOf(load({ mode }, batchOf([row(1, 'a'), row(null, 'b')])));
    expect(error).toMatchObject({ code: 'null_value', message: 't: row 2 has no id, which is its key' });
    expect(await sql("select 1 from duckdb_tables() where table_name = 't'")).toEqual([]);
  });

  test('keys of several columns, nothing but keys', async () => {
    const columns = [column('a', 'integer'), column('seq', 'string')];
    const more = { mode, columns, primary_key: ['seq', 'a'] };
    await load(
      more,
      batchOf([
        ['1', 'x'],
        ['1', 'x'],
        ['1', 'y'],
      ]),
    );
    await load(
      { ...more, fence: 2 },
      batchOf([
        ['1', 'x'],
        ['2', 'x'],
      ]),
    );
    expect(await sql('select a, seq from t order by all')).toEqual([
      ['1', 'x'],
      ['1', 'y'],
      ['2', 'x'],
    ]);
  });
});

test('a value that does not fit is named by row and column, and nothing of it stays', async () => {
  const error = await errorOf(load({}, batchOf([row(1, 'a', '2024-01-01')]), batchOf([row(2, 'b', 'soon')])));
  expect(error).toMatchObject({
    type: 'system_error',
    code: 'value_does_not_fit',
    message: 't: row 2 has "soon" in at, which is no TIMESTAMP WITH TIME ZONE',
  });
  expect(await sql("select 1 from duckdb_tables() where table_name = 't'")).toEqual([]);
});

test('odd names in schema, table and column; names that differ by case only and views are refused', async () => {
  const odd = 'Ta"b\'le; — 表 %s \\';
  for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
    const columns = [column('I "d', 'integer'), column('select', 'string'), column('Ünï', 'string')];
    const more = {
      schema: `S "x ${mode}`,
      table: odd,
      columns,
      primary_key: ['I "d'],
      mode,
      stream_id: `odd/../${mode}`,
    };
    await load(more, batchOf([['1', 'a', 'b']]));
    await load({ ...more, fence: 2 }, batchOf([['2', 'a', 'b']]));
    const rows = await sql(`select 1 from "S ""x ${mode}"."${odd.replaceAll('"', '""')}"`);
    expect(rows.length).toBe(mode === 'overwrite' ? 1 : 2);
  }
  expect(await codeOf(open({ columns: [column('a', 'string'), column('A', 'string')] }))).toBe(
    'config_error duplicate_column',
  );
  await sql('create view v as select 1 as id');
  expect(await codeOf(open({ table: 'v' }))).toBe('config_error not_a_table');
});

test('what is spilled is gone with the writer, and what a crash left goes with the next attempt', async () => {
  const left = join(place.filesRoot, '.data.duckdb.stream.1.spill/x.tmp');
  await Bun.write(left, 'left');
  const writer = await open({ fence: 2 });
  // What repeats would be packed and fit into memory.
  for (let at = 0; at < 26; at++) {
    const name = randomBytes(12_500_000).toString('base64');
    const rows = Array.from({ length: 2500 }, (_, id) => row(at * 2500 + id, name.slice(id * 6000, (id + 1) * 6000)));
    await writer.write({ rows, bytes: name.length });
  }
  const spilled = () => readdir(place.filesRoot).then((names) => names.filter((one) => one.endsWith('.spill')));
  expect(await spilled()).toEqual(['.data.duckdb.stream.2.spill']);
  expect(await writer.finish(null)).toMatchObject({ rows_loaded: 65_000 });
  expect(await spilled()).toEqual([]);
  expect(await sql('select count(*), count(distinct id), sum(length(name)) = 390000000 from t')).toEqual([
    ['65000', '65000', 'true'],
  ]);
});
