import { describe, expect, test } from 'bun:test';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { followers } from './postgres-cdc-support.ts';

const { sides, follow, both, context, discovered } = followers();
const sql = (text: string) => sides.source.sql.unsafe(text);
const there = async (table: string, columns: string) =>
  (await sides.destination.sql.unsafe(`select ${columns} from ${table} order by 1`)).map((row) => Object.values(row));

describe('discovery', () => {
  test('tables with a key support CDC, views and tables without one do not', async () => {
    await sql(`create table keyed (id int primary key, twice int generated always as (id * 2) stored, name text);
      create view seen as select * from keyed; create table keyless (id int, at timestamptz);
      create table whole (id int); alter table whole replica identity full;
      create table silent (id int primary key); alter table silent replica identity nothing;
      create table postponed (id int primary key deferrable, name text); create unlogged table unlogged (id int primary key);
      create table parent (id int primary key); create table child (primary key (id)) inherits (parent);
      create table parted (id int primary key) partition by list (id); create table one partition of parted for values in (1);
      create table mixed (id int primary key) partition by list (id);
      create table tree partition of mixed for values in (1, 2) partition by list (id);
      create unlogged table leaf partition of tree for values in (1)`);
    const streams = await postgresSource.discover(context().ctx);
    const logged = streams.filter((stream) => stream.change_log).map(({ name }) => name);
    expect(logged.toSorted()).toEqual(['child', 'keyed', 'parted', 'whole']);
    const keyed = await discovered('keyed');
    expect(keyed.fields.map(({ path }) => path[0])).toEqual([
      'id',
      'name',
      '_cdc_operation',
      '_cdc_committed_at',
      '_cdc_lsn',
    ]);
    expect(keyed).toMatchObject({
      source_defined_cursor: true,
      default_cursor_field: null,
      supports_date_window: false,
    });
    const plain = await postgresSource.discover(context({ replication: 'cursor' }).ctx);
    expect(plain.find(({ name }) => name === 'keyed')).toMatchObject({ source_defined_cursor: false });
  });
});

describe('a table read by CDC', () => {
  test('inserts, updates, deletes, changed keys and truncates arrive', async () => {
    await sql(`create table kinds (id int primary key, name text, flag boolean);
      insert into kinds select n, 'name ' || n, n % 2 = 0 from generate_series(1, 20) n`);
    const follower = await follow('kinds');
    expect(await follower.run()).toMatchObject({ rows_loaded: 20 });
    expect(follower.state!.cursor).toMatch(/^[0-9A-F]{8}\/[0-9A-F]{8}$/);
    await sql(`insert into kinds values (21, 'new', null); update kinds set name = 'changed', flag = not flag where id <= 3;
      delete from kinds where id in (5, 6); update kinds set id = 100 where id = 7; update kinds set id = id + 1000 where id > 18`);
    const second = await follower.run();
    expect(second).toMatchObject({ rows_deleted: 2 + 1 + 2 });
    const after = await both('kinds');
    expect(after.destination).toEqual(after.source);
    expect(after.source.n).toBe(19);
    await sql(`insert into kinds values (50, 'lost'); truncate kinds; insert into kinds values (51, 'kept', true)`);
    await follower.run();
    expect(await there('kinds', 'id, name, flag')).toEqual([[51, 'kept', true]]);
    const idle = await follower.run();
    expect(idle).toMatchObject({ rows_loaded: 0, rows_updated: 0, rows_deleted: 0 });
  });

  test('keys that two rows exchange', async () => {
    await sql(`create table traded (id int primary key, name text);
      insert into traded values (1, 'a'), (2, 'b')`);
    const follower = await follow('traded');
    await follower.run();
    await sql(`update traded set id = -1 where id = 1; update traded set id = 1 where id = 2;
      update traded set id = 2 where id = -1`);
    await follower.run();
    expect(await there('traded', 'id, name')).toEqual([
      [1, 'b'],
      [2, 'a'],
    ]);
    await sides.destination.sql`create unique index on traded (name)`;
    await sql(`update traded set name = '' where id = 1; update traded set name = 'b' where id = 2;
      update traded set name = 'a' where id = 1`);
    await follower.run();
    expect(await there('traded', 'id, name')).toEqual([
      [1, 'a'],
      [2, 'b'],
    ]);
  });

  test('unchanged TOAST values are kept, even if the key changes', async () => {
    await sql(`create table toasted (id int primary key, name text, big text, bytes bytea);
      alter table toasted alter big set storage external; alter table toasted alter bytes set storage external;
      insert into toasted select n, 'a', repeat(n::text, 20000), decode(repeat('ab', 20000), 'hex') from generate_series(1, 4) n`);
    const follower = await follow('toasted');
    await follower.run();
    await sql(`update toasted set name = 'b' where id = 1; update toasted set big = repeat('x', 30000) where id = 2;
      update toasted set name = 'c' where id = 2; update toasted set id = 30 where id = 3;
      insert into toasted values (5, 'a', repeat('y', 30000), null); update toasted set name = 'd' where id = 5`);
    const { batches } = await follower.run();
    const partial = batches.flatMap(({ changes = [] }) => changes).filter((one) => 'unchanged' in one && one.unchanged);
    expect(partial.length).toBeGreaterThanOrEqual(3);
    const after = await both('toasted');
    expect(after.destination).toEqual(after.source);
    expect((await there('toasted', 'id, length(big) as text, length(bytes) as bytes'))[3]).toEqual([5, 30000, null]);
  });

  test('types arrive as in a snapshot', async () => {
    await sql(`create type mood as enum ('sad', 'ok'); create domain positive as int check (value > 0);
      create table typed (id int primary key, b boolean, n numeric, f float8, t timestamptz, l timestamp, d date, j jsonb,
        x bytea, a int[], ba boolean[], c char(5), m mood, p positive, iv interval, u uuid, ti time, s text)`);
    const values = (
      id: number,
    ) => `(${id}, true, 12345678901234567890.123456789, 0.1::float8 + 0.2, '2024-02-03 04:05:06.123456+07',
      '0044-03-15 01:02:03 BC', 'infinity', '{"a": [1, 2.50, null]}', '\\x00ff5c0a', '{1,NULL,3}', '{t,f}', 'ab', 'sad', 7,
      '1 year 2 days 03:04:05.6', '7f3b1c1e-5a0e-4b8e-9a6d-0d9f5c6e7a8b', '23:59:59.999999', E'tab\\tline\\nback\\\\slash \\u00e9\\U0001F600')`;
    await sql(`insert into typed values ${values(1)}`);
    const follower = await follow('typed');
    await follower.run();
    await sql(`insert into typed values ${values(2)}; insert into typed (id) values (3);
      insert into typed (id, s) values (4, E'\\uFEFFmarked'), (5, E'\\u00e9'), (6, repeat('long ', 60)), (7, '')`);
    await follower.run();
    const after = await both('typed', 't.id, b, n, f, t.t, l, d, j, x, a, ba, c, m, p, iv, u, ti, s');
    expect(after.destination).toEqual(after.source);
    const [first, second, third] = await there('typed t', `id, substr(row(t.*)::text, 3) as row`);
    expect(second).toEqual([2, first![1]]);
    expect(third![1]).toMatch(/^,+\)$/);
  });

  test('a column missing from the log, and one missing from the catalog', async () => {
    await sql(`create table growing (id int primary key, name text); insert into growing values (1, 'a'), (2, 'b')`);
    const follower = await follow('growing');
    await follower.run();
    await sql(`update growing set name = 'before' where id = 1; alter table growing add extra int;
      update growing set extra = 5 where id = 2; insert into growing values (3, 'c', 6)`);
    await follower.run();
    const after = await both('growing');
    expect(after.destination).toEqual(after.source);
    const stale = await discovered('growing');
    await sql(`alter table growing add more text; insert into growing values (4, 'd', 7, 'm')`);
    const columns = stale.fields.slice(0, 3).map((field) => ({ field, masking: 'none' as const }));
    await expect(follower.run({ stream: stale, columns })).rejects.toMatchObject({
      code: 'table_changed',
      retryable: true,
    });
    await follower.run();
    expect((await there('growing', 'id, name, extra, more'))[3]).toEqual([4, 'd', 7, 'm']);
  });

  test('partitions are one table; a schema and names that need quotes', async () => {
    await sql(`create schema "Odd ""one"; create table "Odd ""one"."Table'1" (id int, day date, "na me" text, primary key (id, day)) partition by range (day);
      create table "Odd ""one".p1 partition of "Odd ""one"."Table'1" for values from ('2024-01-01') to ('2025-01-01');
      create table "Odd ""one".p2 partition of "Odd ""one"."Table'1" for values from ('2025-01-01') to ('2026-01-01');
      insert into "Odd ""one"."Table'1" values (1, '2024-05-05', 'x'), (2, '2025-05-05', 'y')`);
    const follower = await follow("Table'1");
    await follower.run();
    await sql(
      `update "Odd ""one"."Table'1" set day = '2025-06-06' where id = 1; insert into "Odd ""one".p1 values (3, '2024-01-01', 'z')`,
    );
    await follower.run();
    expect(await there(`"Table'1"`, 'id, day::text, "na me"')).toEqual([
      [1, '2025-06-06', 'x'],
      [2, '2025-05-05', 'y'],
      [3, '2024-01-01', 'z'],
    ]);
  });

  test('append keeps a history, with the metadata of each change', async () => {
    await sql(`create table history (id int primary key, name text); insert into history values (1, 'a')`);
    const follower = await follow('history', { mode: 'append', facts: true });
    await follower.run();
    await sql(
      `insert into history values (2, 'b'); update history set name = 'c' where id = 1; delete from history where id = 2`,
    );
    await follower.run();
    const rows = await there(
      'history',
      `coalesce(_cdc_lsn, ''), id, name, _cdc_operation, _cdc_committed_at is not null`,
    );
    const told = rows.map(([, ...rest]) => rest).filter(([id]) => id !== null);
    expect(told).toEqual([
      [1, 'a', 'read', false],
      [2, 'b', 'insert', true],
      [1, 'c', 'update', true],
      [2, null, 'delete', true],
    ]);
  });

  test('soft_delete marks deleted rows', async () => {
    await sql(`create table soft (id int primary key, name text); insert into soft values (1, 'a'), (2, 'b')`);
    const follower = await follow('soft', { mode: 'soft_delete' });
    await follower.run();
    await sql('delete from soft where id = 1');
    await follower.run();
    expect(await there('soft', 'id, name, _deleted_at is not null')).toEqual([
      [1, 'a', true],
      [2, 'b', false],
    ]);
  });
});
