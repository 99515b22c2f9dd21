import { beforeEach, describe, expect, test } from 'bun:test';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { batchOf, column, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';
import { COLUMNS } from './writing.ts';

const { sides, target, open, row, load, content, exists, errorOf, tableName } = targetTables();
let table = '';
beforeEach(() => {
  table = tableName();
});

describe('append', () => {
  test('rows and state become visible together at each checkpoint, not before', async () => {
    const writer = await open();
    await writer.write(batchOf([row(1, 'a')]));
    expect(await exists()).toBe(false);
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 1 });
    await writer.write(batchOf([row(2, 'b')]));
    expect(await content()).toEqual([[1, 'a']]);
    expect(await writer.finish({ cursor: '2' })).toMatchObject({ rows_loaded: 2, rows_updated: 0 });
    expect(await content()).toEqual([
      [1, 'a'],
      [2, 'b'],
    ]);
    const [state] = await sides.destination
      .sql`select state, state_version, finished from _pipeline_state where stream_id = ${table}`;
    expect(state).toEqual({ state: { cursor: '2' }, state_version: '2', finished: true });
  });

  test('two runs append, and a new column is added for the second', async () => {
    await load({}, batchOf([row(1, 'a')]));
    await load(
      { stream_run_id: 'second', fence: 2, columns: [...COLUMNS, column('more', 'json')] },
      batchOf([[...row(1, 'a'), '{"x":1}']]),
    );
    const rows = await sides.destination.sql.unsafe(`select id, more from ${table} order by more nulls first`);
    expect([...rows]).toEqual([
      { id: '1', more: null },
      { id: '1', more: { x: 1 } },
    ] as never);
  });

  test('NULL differs from the empty string; NUL characters are refused, or removed and counted', async () => {
    const { ctx, warnings } = destinationConfig(sides.destination);
    const refusing = await postgresDestination.open(ctx, target());
    await expect(refusing.write(batchOf([row(1, null), row(2, 'a\0b')]))).rejects.toThrow(
      'row 2: name has "a\\u0000b", which text cannot hold exactly',
    );
    await refusing.abort();
    const writer = await postgresDestination.open(ctx, target({ fence: 2, inexact_values: 'allow' }));
    await writer.write(batchOf([row(1, null), row(2, ''), row(3, 'a\0b'), row(4, '\0')]));
    await writer.finish(null);
    expect(await content()).toEqual([
      [1, null],
      [2, ''],
      [3, 'ab'],
      [4, ''],
    ]);
    expect(warnings).toEqual(['values_changed']);
  });

  test('a stream without rows still creates its table', async () => {
    await load({});
    expect(await content()).toEqual([]);
  });

  test('a checkpoint without rows keeps its state', async () => {
    const writer = await open();
    await writer.checkpoint({ cursor: '5' });
    await writer.abort();
    expect((await open({ fence: 2 })).committed).toMatchObject({
      state: { cursor: '5' },
      finished: false,
      same_stream_run: true,
    });
  });
});

describe('names', () => {
  test('quotes, spaces, upper case and every alphabet in schema, table and column, in each mode', async () => {
    const odd = 'Ta"b\'le; — 表 %s \\';
    for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
      const columns = [column('I "d', 'integer'), column('select', 'string'), column('Ünï', 'string')];
      const more = {
        schema: `S "x ${mode}`,
        table: odd,
        columns,
        primary_key: ['I "d'],
        mode,
        stream_id: `odd ${mode}`,
      };
      await load(more, batchOf([['1', 'a', 'b']]));
      await load({ ...more, fence: 2 }, batchOf([['2', 'a', 'b']]));
      const rows = await sides.destination
        .sql`select * from ${sides.destination.sql(more.schema)}.${sides.destination.sql(odd)}`;
      expect(rows.length).toBe(mode === 'overwrite' ? 1 : 2);
    }
  });

  test('names that PostgreSQL would truncate or confuse are rejected', async () => {
    const long = 'ä'.repeat(32);
    expect((await errorOf(open({ table: long })))!.code).toBe('name_too_long');
    expect((await errorOf(open({ columns: [column(long, 'string')] })))!.code).toBe('name_too_long');
    const system = await sides.destination
      .sql`select attname from pg_attribute where attrelid = 'pg_class'::regclass and attnum < 0`;
    expect(system).toHaveLength(6);
    for (const { attname } of system) {
      expect((await errorOf(open({ columns: [column(String(attname), 'string')] })))!.code).toBe('reserved_name');
    }
    expect((await errorOf(open({ columns: [column('a', 'string'), column('a', 'string')] })))!.code).toBe(
      'duplicate_column',
    );
  });

  test('a stream without columns, as of an empty file, is refused by the name of its table', async () => {
    expect(await errorOf(open({ table: 'hollow', columns: [] }))).toMatchObject({
      code: 'no_fields',
      message: 'Table hollow would have no columns. Select a field; an empty file has none until it is filled',
    });
  });

  test('the longest name works in each mode', async () => {
    const longest = 'é'.repeat(31) + 'x';
    for (const mode of ['overwrite', 'append_dedup', 'append'] as const) {
      await load({ mode, table: longest, stream_id: mode }, batchOf([row(1, 'a')]));
      await sides.destination.sql.unsafe(`drop table "${longest}"`);
    }
  });

  test('a view in place of the table is rejected', async () => {
    await sides.destination.sql.unsafe(`create view ${table} as select 1 as id`);
    expect((await errorOf(open()))!.code).toBe('not_a_table');
  });
});

test('many streams can be opened at once in a new schema', async () => {
  const streams = Array.from({ length: 12 }, (_, index) => `parallel_${index}`);
  await Promise.all(
    streams.map(async (name, index) => {
      const mode = (['append', 'overwrite', 'append_dedup'] as const)[index % 3]!;
      const writer = await open({ schema: 'brand_new', table: name, stream_id: name, mode });
      await writer.write(batchOf([row(1, name)]));
      await writer.checkpoint({ cursor: '1' });
      await writer.finish(null);
    }),
  );
  const made = await sides.destination.sql`select count(*)::int as count from pg_tables where schemaname = 'brand_new'`;
  expect(made[0]!.count).toBe(13);
});

test('every statement is recorded, without the password', async () => {
  const { ctx, entries } = destinationConfig(sides.destination);
  const writer = await postgresDestination.open(ctx, target());
  await writer.write(batchOf([row(1, 'a')]));
  await writer.finish(null);
  expect(new Set(entries.map(({ method }) => method))).toEqual(new Set(['CONNECT', 'QUERY', 'COPY']));
  expect(entries.every(({ status }) => status === 200)).toBe(true);
  const { host, port, database, password } = sides.destination.server;
  expect(new Set(entries.map(({ url }) => url))).toEqual(new Set([`postgres://${host}:${port}/${database}`]));
  expect(JSON.stringify(entries)).not.toContain(password);
  expect(entries.find(({ method }) => method === 'COPY')!.body).toContain(`copy "public"."${table}__new_`);
});
