import { afterEach, beforeEach, describe, expect, test, setDefaultTimeout } from 'bun:test';
import type { Batch, Writer, WriteTarget } from '../../server/connectors/define.ts';
import { ConfigurationError, DataError, FencedError } from '../../server/connectors/errors.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { backends, batchOf, column, destinationConfig, eventually, twoDatabases } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

const sides = twoDatabases();

const COLUMNS = [column('id', 'integer'), column('name', 'string'), column('at', 'timestamp_tz')];
let table = '';
let count = 0;
beforeEach(() => {
  table = `table_${++count}`;
});

const target = (more: Partial<WriteTarget> = {}): WriteTarget => ({
  schema: null,
  table,
  columns: COLUMNS,
  primary_key: ['id'],
  cursor_column: null,
  mode: 'append',
  connection_id: 'connection',
  stream_id: table,
  connection_run_id: 'run',
  stream_run_id: 'first',
  fence: 1,
  state_version: 0,
  ...more,
});
const writers: Writer[] = [];
const open = async (more: Partial<WriteTarget> = {}) => {
  const writer = await postgresDestination.open(destinationConfig(sides.destination).ctx, target(more));
  writers.push(writer);
  return writer;
};
afterEach(async () => {
  for (const writer of writers.splice(0)) await writer.abort();
});
const row = (id: number, name: string | null, at: string | null = null) => [String(id), name, at];
const load = async (more: Partial<WriteTarget>, ...batches: Batch[]) => {
  const writer = await open(more);
  try {
    for (const batch of batches) await writer.write(batch);
    return await writer.finish(null);
  } finally {
    await writer.abort();
  }
};
const content = async (order = 'id, name') =>
  (await sides.destination.sql.unsafe(`select id::int, name from "${table}" order by ${order}`)).map(({ id, name }) => [
    id,
    name,
  ]);
const exists = async (name = table) =>
  (await sides.destination.sql`select 1 from pg_class where relname = ${name}`).length > 0;
const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error as Error & { code: string },
  );

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

  test('NULL and the empty text stay apart; NUL characters are left out with one warning', async () => {
    const { ctx, warnings } = destinationConfig(sides.destination);
    const writer = await postgresDestination.open(ctx, target());
    await writer.write(batchOf([row(1, null), row(2, ''), row(3, 'a\0b'), row(4, '\0')]));
    await writer.finish(null);
    expect(await content()).toEqual([
      [1, null],
      [2, ''],
      [3, 'ab'],
      [4, ''],
    ]);
    expect(warnings).toEqual(['nul_character_removed']);
  });

  test('a stream without rows still makes its table', async () => {
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

describe('overwrite', () => {
  const mode = 'overwrite' as const;

  test('readers see the old rows until the new ones replace them all', async () => {
    await load({ mode }, batchOf([row(1, 'old'), row(2, 'old')]));
    const writer = await open({ mode, fence: 2, stream_run_id: 'second' });
    await writer.write(batchOf([row(3, 'new')]));
    expect(await writer.checkpoint({ cursor: null })).toMatchObject({ rows_loaded: 0 });
    expect(await content()).toEqual([
      [1, 'old'],
      [2, 'old'],
    ]);
    await writer.write(batchOf([row(4, 'new')]));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: 2 });
    expect(await content()).toEqual([
      [3, 'new'],
      [4, 'new'],
    ]);
    const keys = await sides.destination
      .sql`select conname from pg_constraint where conrelid = ${table}::regclass and contype = 'p'`;
    expect(keys.map(({ conname }) => conname)).toEqual([`${table}_pkey`]);
    const left = await sides.destination.sql`select relname from pg_class where relname like ${`${table}\\_\\_new%`}`;
    expect(left.length).toBe(0);
  });

  test('an empty stream empties the table', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await load({ mode, fence: 2 });
    expect(await content()).toEqual([]);
  });

  test('grants and the owner stay', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const { sql } = sides.destination;
    await sql.unsafe(`create role reader_${table}; create role owner_${table};
      grant select on ${table} to reader_${table} with grant option; grant insert on ${table} to public;
      alter table ${table} owner to owner_${table}`);
    const acl = () =>
      sql`select relacl::text, pg_get_userbyid(relowner) as owner, relfilenode from pg_class where oid = ${table}::regclass`;
    const [before] = await acl();
    await load({ mode, fence: 2 }, batchOf([row(2, 'new')]));
    const [after] = await acl();
    expect(after!.relfilenode).not.toBe(before!.relfilenode);
    expect(after!.owner).toBe(before!.owner);
    const parts = (text: string) => text.slice(1, -1).split(',').sort();
    expect(parts(after!.relacl)).toEqual(parts(before!.relacl));
    await sql.unsafe(`drop table ${table}; drop role reader_${table}; drop role owner_${table}`);
  });

  test('views and indexes on the table go on working', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await sides.destination.sql.unsafe(
      `create view view_${table} as select name from ${table}; create index on ${table} (name)`,
    );
    await load({ mode, fence: 2, columns: [...COLUMNS, column('more', 'string')] }, batchOf([[...row(2, 'new'), 'x']]));
    expect([...(await sides.destination.sql.unsafe(`select * from view_${table}`))]).toEqual([
      { name: 'new' },
    ] as never);
    expect((await sides.destination.sql`select 1 from pg_indexes where tablename = ${table}`).length).toBe(2);
  });

  test('a table that foreign keys point to is refused, and stays', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await sides.destination.sql.unsafe(
      `create table child_${table} (id bigint references ${table}); insert into child_${table} values (1)`,
    );
    const error = await errorOf(load({ mode, fence: 2 }, batchOf([row(2, 'new')])));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error!.code).toBe('table_is_referenced');
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('rows with the same key are an error of the data, and the old rows stay', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const error = await errorOf(load({ mode, fence: 2 }, batchOf([row(2, 'a'), row(2, 'b')])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('duplicate_key');
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('a reader holding the table for long only delays the swap', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const writer = await open({ mode, fence: 2 });
    await writer.write(batchOf([row(2, 'new')]));
    let finished: Promise<unknown> = Promise.resolve();
    await sides.destination.sql.begin(async (sql) => {
      await sql.unsafe(`select * from ${table}`);
      finished = writer.finish(null);
      await eventually(async () => (await sides.destination.sql`select 1 from pg_locks where not granted`).length > 0);
      expect([...(await sql.unsafe(`select name from ${table}`))]).toEqual([{ name: 'old' }] as never);
    });
    await finished;
    expect(await content()).toEqual([[2, 'new']]);
  });
});

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
      [1, 'newest'],
      [2, 'b'],
      [3, 'cursor'],
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
      [1, 'newest'],
      [2, 'b'],
      [3, 'newer'],
      [4, 'new'],
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
    expect(retry.committed).toMatchObject({ state: { cursor: '2' }, state_version: 2, counts: { rows_loaded: 3 } });
    await retry.write(batchOf([row(3, 'c')]));
    expect(await retry.finish({ cursor: '3' })).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
    expect(await content()).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
  });

  test('an existing table without a key gets one', async () => {
    await sides.destination.sql.unsafe(
      `create table ${table} (name text, id bigint, at timestamptz); insert into ${table} values ('old', 1)`,
    );
    await load({ mode }, batchOf([row(1, 'new')]));
    expect(await content()).toEqual([[1, 'new']]);
  });

  test('an existing table with doubled keys is refused with a clear error', async () => {
    await sides.destination.sql.unsafe(
      `create table ${table} (name text, id bigint, at timestamptz); insert into ${table} values ('x', 1), ('y', 1)`,
    );
    const error = await errorOf(open({ mode }));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error!.code).toBe('key_not_unique');
  });

  test('a row without its key is an error of the data that names row and column', async () => {
    const error = await errorOf(load({ mode }, batchOf([row(1, 'a'), [null, 'b', null]])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('null_value');
    expect(error!.message).toContain('row 2');
    expect(await exists()).toBe(false);
  });

  test("keys of several columns, nothing but keys, and a column named like the stage's own", async () => {
    const columns = [column('a', 'integer'), column('_seq', 'string')];
    const more = { mode, columns, primary_key: ['_seq', 'a'] };
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
    const rows = await sides.destination.sql.unsafe(`select a::int, _seq from ${table} order by 1, 2`);
    expect(rows.map(({ a, _seq }) => [a, _seq])).toEqual([
      [1, 'x'],
      [1, 'y'],
      [2, 'x'],
    ]);
  });

  test('a partitioned table takes the merge', async () => {
    await sides.destination.sql.unsafe(`create table ${table} (id bigint primary key, name text, at timestamptz) partition by hash (id);
      create table ${table}_0 partition of ${table} for values with (modulus 1, remainder 0); insert into ${table} values (1, 'old')`);
    await load({ mode }, batchOf([row(1, 'new'), row(2, 'new')]));
    expect(await content()).toEqual([
      [1, 'new'],
      [2, 'new'],
    ]);
  });
});

describe('who may commit', () => {
  test('an attempt with a lower fence cannot commit a row any more', async () => {
    const old = await open();
    await old.write(batchOf([row(1, 'zombie')]));
    const young = await open({ fence: 2 });
    const error = await errorOf(old.finish({ cursor: '1' }));
    expect(error).toBeInstanceOf(FencedError);
    await old.abort();
    await young.write(batchOf([row(2, 'heir')]));
    await young.finish(null);
    expect(await content()).toEqual([[2, 'heir']]);
    expect(await errorOf(open())).toBeInstanceOf(FencedError);
  });

  test('a fenced overwrite leaves the table alone', async () => {
    await load({ mode: 'overwrite' }, batchOf([row(1, 'old')]));
    const zombie = await open({ mode: 'overwrite', fence: 2 });
    await zombie.write(batchOf([row(2, 'zombie')]));
    const heir = await open({ mode: 'overwrite', fence: 3 });
    expect(await errorOf(zombie.finish(null))).toBeInstanceOf(FencedError);
    await zombie.abort();
    await heir.abort();
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('a finished stream run is told so; a later run is told only a newer state', async () => {
    const writer = await open();
    await writer.finish({ cursor: '7' });
    const again = await open({ fence: 2 });
    expect(again.committed).toMatchObject({ finished: true, same_stream_run: true, state_version: 1 });
    await again.abort();
    const behind = await open({ fence: 3, stream_run_id: 'second', state_version: 0 });
    expect(behind.committed).toMatchObject({ state: { cursor: '7' }, same_stream_run: false, finished: false });
    await behind.abort();
    const level = await open({ fence: 4, stream_run_id: 'second', state_version: 1 });
    expect(level.committed).toBe(null);
    await level.abort();
  });

  test('a cursor that somebody moved in the control plane is not brought back', async () => {
    await (await open()).finish({ cursor: '7' });
    const moved = await open({ fence: 2, stream_run_id: 'second', state_version: 5 });
    await moved.finish(null);
    const next = await open({ fence: 3, stream_run_id: 'third', state_version: 0 });
    expect(next.committed).toMatchObject({ state: null, state_version: 5 });
    await next.abort();
  });
});

describe('nothing half done stays', () => {
  test('abort drops everything that is not committed, and may be called twice', async () => {
    for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
      const writer = await open({ mode });
      await writer.write(batchOf([row(1, 'a')]));
      await writer.abort();
      await writer.abort();
    }
    await eventually(async () => (await backends(sides.destination)) === 0);
    expect(await exists()).toBe(false);
    const left = await sides.destination
      .sql`select relname from pg_class where relname like ${'%\\_\\_new%'} or relname like ${'stage%'}`;
    expect([...left]).toEqual([]);
  });

  test('a connection killed in the middle leaves the last checkpoint', async () => {
    const { sql, server } = sides.destination;
    const writer = await open();
    await writer.write(batchOf([row(1, 'a')]));
    await writer.checkpoint({ cursor: '1' });
    await writer.write(batchOf([row(2, 'b')]));
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = ${server.database} and application_name = 'data-pipelines'`;
    const error = await errorOf(writer.finish({ cursor: '2' }));
    expect(error).toMatchObject({ type: 'transient_error', retryable: true });
    await writer.abort();
    expect(await content()).toEqual([[1, 'a']]);
    expect((await open({ fence: 2 })).committed).toMatchObject({ state: { cursor: '1' }, counts: { rows_loaded: 1 } });
  });

  test('a bad value in the middle is told with its place, and no row of that transaction stays', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const error = await errorOf(load({ fence: 2 }, batchOf([row(2, 'b'), row(3, 'c'), ['four', 'secret text', null]])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('invalid_value');
    expect(error!.message).toContain('row 3, column id');
    expect(error!.message).not.toContain('secret text');
    expect(await content()).toEqual([[1, 'a']]);
  });

  test("an abort by the signal ends a write that waits, with the signal's reason", async () => {
    const { ctx, abort } = destinationConfig(sides.destination);
    const writer = await postgresDestination.open(ctx, target());
    await writer.write(batchOf([row(1, 'a')]));
    const reason = new Error('stop');
    abort.abort(reason);
    expect(await errorOf(writer.write(batchOf([row(2, 'b')])))).toBe(reason as never);
    await writer.abort();
    await eventually(async () => (await backends(sides.destination)) === 0);
    expect(await exists()).toBe(false);
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

  test('names that PostgreSQL would cut or confuse are refused', async () => {
    const long = 'ä'.repeat(32);
    expect((await errorOf(open({ table: long })))!.code).toBe('name_too_long');
    expect((await errorOf(open({ columns: [column(long, 'string')] })))!.code).toBe('name_too_long');
    expect((await errorOf(open({ columns: [column('a', 'string'), column('a', 'string')] })))!.code).toBe(
      'duplicate_column',
    );
  });

  test('the longest name works in each mode', async () => {
    const longest = 'é'.repeat(31) + 'x';
    for (const mode of ['overwrite', 'append_dedup', 'append'] as const) {
      table = longest;
      await load({ mode, stream_id: mode }, batchOf([row(1, 'a')]));
      await sides.destination.sql.unsafe(`drop table "${longest}"`);
    }
  });

  test('a view in the place of the table is refused', async () => {
    await sides.destination.sql.unsafe(`create view ${table} as select 1 as id`);
    expect((await errorOf(open()))!.code).toBe('not_a_table');
  });
});

test("many streams opening at once in a new schema do not get in each other's way", async () => {
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
  expect(entries.find(({ method }) => method === 'COPY')!.body).toContain(`copy "public"."${table}"`);
});
