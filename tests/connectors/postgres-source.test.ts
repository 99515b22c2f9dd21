import { beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import type { Cell, Filter, Masking } from '../../server/connectors/contract/connector.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { readAll, requestOf, sourceConfig, streamNamed, twoDatabases } from './postgres-support.ts';

const sides = twoDatabases();
const run = (sql: string) => sides.source.sql.unsafe(sql);
const ids = (rows: Cell[][]) => rows.map(([id]) => Number(id)).sort((a, b) => a - b);

beforeAll(async () => {
  await run(`
    create table people (id int primary key, name text not null, email varchar(50), active boolean, updated_at timestamptz, born date,
      upper_name text generated always as (upper(name)) stored);
    comment on table people is 'Everybody';
    create table measures (place text, day date, value numeric, primary key (day, place)) partition by range (day);
    create table measures_2024 partition of measures for values from ('2024-01-01') to ('2025-01-01');
    create view grown_ups as select id, name from people;
    create materialized view names as select name from people;
    create schema "Odd ""schema"; create table "Odd ""schema"."Tä ble'" ("I ""d" int primary key, "select" text);
    insert into "Odd ""schema"."Tä ble'" values (1, 'x');
    create schema other; create table other.thing (id int);
    insert into people (id, name, email, active, updated_at, born) select g, 'Name ' || g, case when g % 2 = 0 then g || '@x.org' end, g % 3 = 0,
      timestamptz '2024-01-01 00:00:00.000001+00' + (g / 3) * interval '1 day', date '2000-01-01' + g from generate_series(1, 30) g`);
});

describe('discovery', () => {
  test('finds tables, whole partitioned tables, views and materialized views of all user schemas', async () => {
    const streams = await postgresSource.discover(sourceConfig(sides.source).ctx);
    expect(streams.map(({ namespace, name }) => `${namespace}.${name}`)).toEqual([
      `Odd "schema.Tä ble'`,
      'other.thing',
      'public.grown_ups',
      'public.measures',
      'public.names',
      'public.people',
    ]);
    const narrowed = await postgresSource.discover(sourceConfig(sides.source, { schemas: ['other'] }).ctx);
    expect(narrowed.map(({ name }) => name)).toEqual(['thing']);
  });

  test('types, keys in their order, nullability and cursors', async () => {
    const people = await streamNamed(sides.source, 'people');
    expect(people.description).toBe('Everybody');
    expect(
      people.fields.map(({ path, type, source_type, nullable, is_primary_key, is_cursor_candidate }) => [
        path[0],
        type,
        source_type,
        nullable,
        is_primary_key,
        is_cursor_candidate,
      ]),
    ).toEqual([
      ['id', 'integer', 'integer', false, true, true],
      ['name', 'string', 'text', false, false, false],
      ['email', 'string', 'character varying(50)', true, false, false],
      ['active', 'boolean', 'boolean', true, false, false],
      ['updated_at', 'timestamp_tz', 'timestamp with time zone', true, false, true],
      ['born', 'date', 'date', true, false, true],
      ['upper_name', 'string', 'text', true, false, false],
    ]);
    expect(people).toMatchObject({
      default_cursor_field: ['updated_at'],
      supports_date_window: true,
      is_resumable: true,
    });
    expect((await streamNamed(sides.source, 'measures')).source_defined_primary_key).toEqual([['day'], ['place']]);
    expect((await streamNamed(sides.source, 'names')).source_defined_primary_key).toBe(null);
  });

  test('unusual names can be read by rows and by bytes', async () => {
    const stream = await streamNamed(sides.source, "Tä ble'");
    expect((await readAll(sourceConfig(sides.source).ctx, requestOf(stream))).rows).toEqual([['1', 'x']]);
    const copy = await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), 'pgcopy-text');
    let text = '';
    for await (const piece of copy.chunks) text += Buffer.from(piece).toString();
    expect(text).toBe('1\tx\n');
  });

  test('generated columns are read as plain values; the estimate comes from the planner', async () => {
    const stream = await streamNamed(sides.source, 'people');
    const { rows } = await readAll(sourceConfig(sides.source).ctx, requestOf(stream));
    expect(rows[0]![6]).toBe('NAME 1');
    await run('analyze people');
    expect(await postgresSource.estimate!(sourceConfig(sides.source).ctx, requestOf(stream))).toBe(30);
  });
});

describe('pushed down', () => {
  const filtered = async (...filters: Filter[]) =>
    ids(
      (await readAll(sourceConfig(sides.source).ctx, requestOf(await streamNamed(sides.source, 'people'), { filters })))
        .rows,
    );

  test.each<[Filter['operator'], string, unknown, number[]]>([
    ['eq', 'id', 3, [3]],
    ['ne', 'id', 3, Array.from({ length: 30 }, (_, i) => i + 1).filter((id) => id !== 3)],
    ['gt', 'id', 28, [29, 30]],
    ['gte', 'born', '2000-01-30', [29, 30]],
    ['lt', 'id', '3', [1, 2]],
    ['lte', 'updated_at', '2024-01-01T00:00:00.000001Z', [1, 2]],
    ['in', 'name', ['Name 1', 'Name 2', "O'Neill"], [1, 2]],
    ['in', 'name', [], []],
    ['not_in', 'id', Array.from({ length: 28 }, (_, i) => i), [28, 29, 30]],
    ['between', 'id', [4, 6], [4, 5, 6]],
    ['contains', 'email', '9@x', []],
    ['contains', 'email', '8@X', []],
    ['contains', 'email', '8@x', [8, 18, 28]],
    ['starts_with', 'name', 'Name 3', [3, 30]],
    ['contains', 'name', '%', []],
    ['is_null', 'email', null, Array.from({ length: 15 }, (_, i) => 2 * i + 1)],
    ['is_not_null', 'email', null, Array.from({ length: 15 }, (_, i) => 2 * i + 2)],
    ['eq', 'active', true, [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]],
    ['eq', 'name', "'; drop table people; --", []],
    ['ne', 'email', '2@x.org', Array.from({ length: 14 }, (_, i) => 2 * i + 4)],
  ])('filter %s on %s', async (operator, field, value, expected) => {
    expect(await filtered({ field, operator, value })).toEqual(expected);
  });

  test("masks hash the text of the row's cell and keep NULL", async () => {
    await run(`create table masked as select 'a  '::char(5) as c, true as b, 1.50::numeric as n, '\\x01'::bytea as y, null::text as e, 'ä'::text as t,
      timestamptz '2024-01-01 12:00:00.5+02' as z`);
    const stream = await streamNamed(sides.source, 'masked');
    const by = (masking: Masking) => requestOf(stream, { columns: stream.fields.map((field) => ({ field, masking })) });
    const plain = (await readAll(sourceConfig(sides.source).ctx, by('none'))).rows[0]!;
    const hashed = (await readAll(sourceConfig(sides.source).ctx, by('hash_sha256'))).rows[0]!;
    const sha = (cell: Cell) => (cell === null ? null : createHash('sha256').update(cell).digest('hex'));
    expect(plain[0]).toBe('a    ');
    expect(hashed).toEqual(plain.map(sha));
    expect((await readAll(sourceConfig(sides.source).ctx, by('redact'))).rows).toEqual([
      plain.map((cell) => (cell === null ? null : '***')),
    ]);
    expect(postgresSource.byteFormats!(by('hash_sha256'))).toContain('pgcopy-binary');
    expect(postgresSource.pushdown.masking).not.toContain('hash_sha256_salted');
  });

  test('a composite value that holds a NULL is masked like any other', async () => {
    await sides.source.sql.unsafe(`create type pair as (a int, b text); create table pairs (id int primary key, p pair);
      insert into pairs values (1, (1, null)), (2, (null, null)), (3, null), (4, (1, 'x'))`);
    const stream = await streamNamed(sides.source, 'pairs');
    const by = async (masking: Masking) => {
      const columns = stream.fields.map((field) => ({
        field,
        masking: field.path[0] === 'p' ? masking : ('none' as const),
      }));
      return (await readAll(sourceConfig(sides.source).ctx, requestOf(stream, { columns }))).rows.map(
        ([, cell]) => cell,
      );
    };
    expect(await by('redact')).toEqual(['***', '***', null, '***']);
    const hash = (text: string) => createHash('sha256').update(text).digest('hex');
    expect(await by('hash_sha256')).toEqual([hash('(1,)'), hash('(,)'), null, hash('(1,x)')]);
  });

  test('a window is half-open, in UTC days', async () => {
    const stream = await streamNamed(sides.source, 'people');
    const request = requestOf(stream, {
      cursor_field: ['updated_at'],
      window: { start: '2024-01-02', end: '2024-01-03' },
    });
    for (const sync_mode of ['full_refresh', 'incremental'] as const) {
      expect(ids((await readAll(sourceConfig(sides.source).ctx, { ...request, sync_mode })).rows)).toEqual([3, 4, 5]);
    }
  });
});
