import { beforeAll, expect, test } from 'bun:test';
import type { WriteTarget } from '../../server/connectors/contract/connector.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import {
  describeMysql,
  destinationConfig,
  mysqlDatabase,
  readAll,
  sourceConfig,
  streamNamed,
} from './mysql-support.ts';
import {
  destinationConfig as postgresConfig,
  requestOf,
  sourceConfig as fromPostgres,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';

const mysql = mysqlDatabase();
const postgres = twoDatabases();

/** MySQL types, with literals and the expected cells. */
const TYPES: Record<string, [literal: string, cell: string][]> = {
  tinyint: [['-128', '-128']],
  'tinyint(1)': [['2', '2']],
  'smallint unsigned': [['65535', '65535']],
  mediumint: [['-8388608', '-8388608']],
  'int(8) unsigned zerofill': [['42', '00000042']],
  bigint: [
    ['-9223372036854775808', '-9223372036854775808'],
    ['9223372036854775807', '9223372036854775807'],
  ],
  'bigint unsigned': [['18446744073709551615', '18446744073709551615']],
  'decimal(65,30)': [
    [
      '-99999999999999999999999999999999999.999999999999999999999999999999',
      '-99999999999999999999999999999999999.999999999999999999999999999999',
    ],
    ['0', '0.000000000000000000000000000000'],
  ],
  'decimal(12,2)': [['-0.01', '-0.01']],
  float: [
    ['1.1', '1.1'],
    ['16777216', '16777216'],
    ['0.1234567891', '0.12345679104328156'],
  ],
  double: [
    ['0.1', '0.1'],
    ['1.7976931348623157e308', '1.7976931348623157e308'],
    ['-2.2250738585072014e-308', '-2.2250738585072014e-308'],
  ],
  'bit(1)': [
    ["b'1'", 'true'],
    ["b'0'", 'false'],
  ],
  'bit(10)': [["b'1000000101'", '1000000101']],
  'bit(64)': [['~0', '1'.repeat(64)]],
  year: [['2155', '2155']],
  date: [
    ["'9999-12-31'", '9999-12-31'],
    ["'1000-01-01'", '1000-01-01'],
  ],
  'datetime(6)': [["'9999-12-31 23:59:59.999999'", '9999-12-31 23:59:59.999999']],
  datetime: [["'2024-02-29 12:00:00'", '2024-02-29 12:00:00']],
  'timestamp(6) null': [["'2024-02-29 12:00:00.000001'", '2024-02-29 12:00:00.000001+00']],
  'time(6)': [
    ["'838:59:59.000000'", '838:59:59.000000'],
    ["'-838:59:59.999999'", '-838:59:59.999999'],
    ["'00:00:00.000001'", '00:00:00.000001'],
  ],
  longtext: [
    ["''", ''],
    ["'\\\\N'", '\\N'],
    ["' a\\tb\\nc\\rd\\\\e '", ' a\tb\nc\rd\\e '],
    ["'ä€😀𐍈\"'''", 'ä€😀𐍈"\''],
  ],
  'varchar(20)': [["'trailing  '", 'trailing  ']],
  'varchar(20) character set latin1': [["'é'", 'é']],
  'char(5)': [["'ab'", 'ab']],
  "enum('small','it''s','ü')": [["'it''s'", "it's"]],
  "set('a','b')": [["'a,b'", 'a,b']],
  json: [[`'{"a" :  1, "big": 12345678901234567890.10}'`, '{"a" :  1, "big": 12345678901234567890.10}']],
  blob: [
    ["x'00ff5c0a0d09'", '\\x00ff5c0a0d09'],
    ["x''", '\\x'],
  ],
  'binary(4)': [["x'01'", '\\x01000000']],
  'varbinary(10)': [["x'2700'", '\\x2700']],
  geometry: [["st_geomfromtext('POLYGON((0 0,1 1.5,1 0,0 0))')", 'POLYGON((0 0,1 1.5,1 0,0 0))']],
  uuid: [["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']],
  inet6: [["'::1'", '::1']],
};
const types = Object.entries(TYPES);
const MANY = 6000;
let table = 0;

beforeAll(async () => {
  if (!mysql.sql) return;
  await mysql.sql(
    `create table everything (id int primary key, ${types.map(([type], i) => `c${i} ${type}`).join(', ')}) character set utf8mb4`,
  );
  const rows = types.flatMap(([, values], index) => values.map(([literal]) => ({ index, literal })));
  for (const [at, { index, literal }] of rows.entries()) {
    await mysql.sql(`insert into everything (id, c${index}) values (${at}, ${literal})`);
  }
  const firsts = types.map(([, [value]]) => value![0]).join(', ');
  await mysql.sql(`insert into everything select 1000 + seq, ${firsts} from seq_1_to_${MANY}`);
});

const target = async (more: Partial<WriteTarget>) => {
  const stream = await streamNamed(mysql, 'everything');
  return targetOf(stream, { table: `copy_${++table}`, stream_id: `copy ${table}`, ...more });
};

describeMysql('every type and value', () => {
  test('is read as the expected cell', async () => {
    const stream = await streamNamed(mysql, 'everything');
    const { rows } = await readAll(sourceConfig(mysql).ctx, requestOf(stream));
    const cells = types.flatMap(([type, values], index) => values.map(([, cell]) => ({ type, index, cell })));
    const read = cells.map(({ type, index }, at) => ({ type, index, cell: rows[at]![index + 1] }));
    expect(read.filter(({ type }) => !type.startsWith('time('))).toEqual(
      cells.filter(({ type }) => !type.startsWith('time(')),
    );
    expect(rows.length).toBe(cells.length + MANY);
    const times = cells.filter(({ type }) => type.startsWith('time(')).map(({ cell }) => cell);
    expect(read.filter(({ type }) => type.startsWith('time(')).map(({ cell }) => cell)).toEqual(times);
  });

  for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
    for (const local_infile of [1, 0]) {
      test(`survives from MySQL to MySQL, ${mode}, local_infile ${local_infile}`, async () => {
        await mysql.sql(`set global local_infile = ${local_infile}`);
        const wanted = await target({ mode });
        const to = destinationConfig(mysql);
        const writer = await mysqlDestination.open(to.ctx, wanted);
        const stream = await streamNamed(mysql, 'everything');
        for await (const batch of mysqlSource.read(sourceConfig(mysql).ctx, requestOf(stream)))
          await writer.write(batch);
        const counts = await writer.finish(null);
        await mysql.sql('set global local_infile = 1');
        const [count] = await mysql.sql('select count(*) as n from everything');
        expect(counts.rows_loaded).toBe(Number(count!.n));
        expect(to.entries.some(({ body }) => body?.startsWith('load data'))).toBe(local_infile === 1);
        // Column by column, as the server compares bytes; a geometry comes as its text.
        const differs = types.map(([type], i) => {
          const as: Record<string, string> = {
            geometry: `st_astext(a.c${i})`,
            'varchar(20) character set latin1': `convert(a.c${i} using utf8mb4)`,
          };
          const source = as[type] ?? `a.c${i}`;
          return `sum(not (cast(${source} as binary) <=> cast(b.c${i} as binary))) as '${type.replaceAll("'", '')}'`;
        });
        const [same] = await mysql.sql(
          `select count(*) as n, ${differs.join(', ')} from everything a join ${wanted.table} b using (id)`,
        );
        const { n, ...different } = same!;
        expect(Number(n)).toBe(Number(count!.n));
        expect(Object.entries(different).filter(([, rows]) => Number(rows) !== 0)).toEqual([]);
        const kept = await mysql.sql(
          `select column_name as name, column_type as type from information_schema.columns where table_schema = database()
             and table_name = '${wanted.table}' and column_name in ('c1', 'c7', 'c13', 'c18') order by ordinal_position`,
        );
        expect(kept.map(({ type }) => type)).toEqual(['tinyint(1)', 'decimal(65,30)', 'bit(64)', 'timestamp(6)']);
      });
    }
  }

  for (const lane of ['bytes', 'rows'] as const) {
    test(`survives from MySQL to PostgreSQL by ${lane}, with the same checksum`, async () => {
      const stream = await streamNamed(mysql, 'everything');
      const wanted = await target({ mode: 'overwrite' });
      const { ctx } = postgresConfig(postgres.destination);
      const writer = await postgresDestination.open(ctx, wanted);
      const from = sourceConfig(mysql).ctx;
      const request = requestOf(stream);
      if (lane === 'bytes') await writer.pipe!(await mysqlSource.copy!(from, request, 'pgcopy-text'));
      else for await (const batch of mysqlSource.read(from, request)) await writer.write(batch);
      await writer.finish(null);
      // PostgreSQL's own text of each value against the cells that MySQL's values must become.
      const { sql } = postgres.destination;
      const columns = types.map((_, i) => `c${i}::text as c${i}`).join(', ');
      const stored = await sql.unsafe(`select ${columns} from ${wanted.table} order by id`);
      const expected = (type: string, cell: string) => {
        if (type.startsWith('int(8)')) return '42';
        if (type === 'json') return '{"a": 1, "big": 12345678901234567890.10}';
        if (type.startsWith('timestamp')) return cell;
        return /e-?308$/.test(cell) ? (sqlNumber(cell) ?? cell) : cell;
      };
      const rows = types.flatMap(([type, values], index) => values.map(([, cell]) => ({ type, index, cell })));
      expect(rows.map(({ index }, at) => stored[at]![`c${index}`])).toEqual(
        rows.map(({ type, cell }) => expected(type, cell)),
      );
      const sums = await sql.unsafe(
        `select md5(row(${types.map((_, i) => `c${i}`).join(', ')})::text) as sum, count(*)::int as n
           from ${wanted.table} where id > 1000 group by 1`,
      );
      expect(sums.map(({ n }) => n)).toEqual([MANY]);
    });
  }
});

describeMysql('texts that UTF-8 without NUL cannot hold', () => {
  beforeAll(async () => {
    await mysql.sql(`create table odd_texts (id int primary key, note varchar(20) character set utf8mb3, other text);
      insert into odd_texts values (1, _utf8mb3 x'61eda0bd62', 'whole \u{1f98a}'), (2, 'a\\tb', 'nul \\0'),
        (3, null, _utf8mb4 x'edb28a5c')`);
  });

  test.each(['bytes', 'rows'] as const)('are refused by PostgreSQL, or changed and counted: %s', async (lane) => {
    const stream = await streamNamed(mysql, 'odd_texts');
    const move = async (inexact_values: 'refuse' | 'allow', fence: number) => {
      const [from, to] = [sourceConfig(mysql), postgresConfig(postgres.destination)];
      const about = { table: `odd_${lane}`, stream_id: lane, stream_run_id: inexact_values, inexact_values, fence };
      const writer = await postgresDestination.open(to.ctx, targetOf(stream, { ...about, mode: 'overwrite' }));
      const request = { ...requestOf(stream), inexact_values };
      try {
        if (lane === 'bytes') await writer.pipe!(await mysqlSource.copy!(from.ctx, request, 'pgcopy-text'));
        else for await (const batch of mysqlSource.read(from.ctx, request)) await writer.write(batch);
        await writer.finish(null);
      } catch (error) {
        await writer.abort();
        throw error;
      }
      return [...from.warnings, ...to.warnings];
    };
    await expect(move('refuse', 1)).rejects.toThrow(
      /note has "a\\ud83db", which text cannot hold exactly\. .* set inexact_values to allow/,
    );
    // One for each column.
    expect(await move('allow', 2)).toEqual(['values_changed', 'values_changed']);
    const rows = await postgres.destination.sql.unsafe(`select id, note, other from odd_${lane} order by id`);
    expect(rows.map(({ id, note, other }) => [Number(id), note, other])).toEqual([
      [1, 'a\ufffdb', 'whole \u{1f98a}'],
      [2, 'a\tb', 'nul '],
      [3, null, '\ufffd\\'],
    ]);
  });
});

/** A double with its exponent written out, as numeric shows it. */
function sqlNumber(text: string): string | null {
  const [, sign = '', head = '', tail = '', exponent = ''] = /^(-?)(\d)\.(\d+)e(-?\d+)$/.exec(text) ?? [];
  const power = Number(exponent);
  if (power >= 0) return `${sign}${head}${tail}${'0'.repeat(power - tail.length)}`;
  return `${sign}0.${'0'.repeat(-power - 1)}${head}${tail}`;
}

describeMysql('values of PostgreSQL', () => {
  /** The same bytes in pieces that end anywhere. */
  async function* inPieces(chunks: AsyncIterable<Uint8Array>, size: number) {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.length; at += size) yield chunk.slice(at, at + size);
    }
  }

  test('are the same in MySQL whether they come as bytes or as rows, in a new table and merged', async () => {
    await postgres.source.sql.unsafe(`create table to_mysql (id bigint primary key, n integer, note text, amount numeric(14,4),
        at timestamptz, day date, clock time, plain timestamp(3), doc jsonb, flag boolean, raw bytea, token uuid, ratio float8);
      insert into to_mysql values
        (1, -5, E'tab\\t line\\n return\\r back\\\\slash \\x0c\\x0b\\b ü😀', -1.5, '2026-02-28 23:59:59.123456+02', '2026-02-28', '23:59:59.5',
          '2026-01-01 01:02:03.004', '{"a": "b\\\\n\\"c"}', true, '\\x00090a0d5c1a5c4eff', gen_random_uuid(), 0.1),
        (2, null, null, null, null, null, null, null, null, null, null, null, null),
        (3, 0, '', 0, '1970-01-01 00:00:00+00', '1000-01-01', '00:00', '9999-12-31', '[]', false, '', gen_random_uuid(), -1e-300),
        (4, 7, '\\N', 99999.0001, now(), now(), now()::time, now(), 'null', true, '\\x5c4e', gen_random_uuid(), 3)`);
    const { ctx } = fromPostgres(postgres.source);
    const stream = (await postgresSource.discover(ctx)).find(({ name }) => name === 'to_mysql')!;
    const request = requestOf(stream);
    const found: Record<string, unknown>[][] = [];
    for (const lane of ['rows', 'bytes'] as const) {
      const copy = `to_mysql_${lane}`;
      for (const [fence, mode] of (['append', 'append_dedup'] as const).entries()) {
        const about = { table: copy, stream_id: copy, stream_run_id: mode, fence: fence + 1, mode };
        const writer = await mysqlDestination.open(destinationConfig(mysql).ctx, targetOf(stream, about));
        expect(writer.byteFormats).toEqual(['pgcopy-text']);
        if (lane === 'bytes') {
          const copied = await postgresSource.copy!(ctx, request, 'pgcopy-text');
          await writer.pipe!({ format: 'pgcopy-text', chunks: inPieces(copied.chunks, 7), rows: () => copied.rows() });
        } else for await (const batch of postgresSource.read(ctx, request)) await writer.write(batch);
        expect(await writer.finish(null)).toMatchObject({ rows_loaded: 4 });
      }
      found.push(await mysql.sql(`select t.*, hex(raw) as bytes from ${copy} t order by id`));
    }
    expect(found[0]!.length).toBe(4);
    expect(found[1]).toEqual(found[0]);
  });
});

describeMysql('dates that are none', () => {
  const zero = ['0000-00-00', '2024-00-10', '2024-01-00'];
  beforeAll(async () => {
    await mysql.sql(
      `set sql_mode = ''; create table zeros (id int primary key, d date, t datetime(3), z timestamp null);
       insert into zeros values (1, '${zero[0]}', '${zero[0]}', '${zero[0]}'), (2, '${zero[1]}', '${zero[1]}', null), (3, '${zero[2]}', null, null), (4, '2024-01-10', null, null)`,
    );
  });

  test('become NULL, with one warning', async () => {
    const from = sourceConfig(mysql);
    const { rows } = await readAll(from.ctx, requestOf(await streamNamed(mysql, 'zeros')));
    expect(rows).toEqual([
      ['1', null, null, null],
      ['2', null, null, null],
      ['3', null, null, null],
      ['4', '2024-01-10', null, null],
    ]);
    expect(from.warnings).toEqual(['zero_date']);
  });

  test('are read once with a cursor', async () => {
    const stream = await streamNamed(mysql, 'zeros');
    const request = requestOf(stream, { sync_mode: 'incremental', cursor_field: ['d'] });
    const first = await readAll(sourceConfig(mysql).ctx, request);
    expect(first.rows.length).toBe(4);
    const again = await readAll(sourceConfig(mysql).ctx, { ...request, state: first.state });
    expect(again.rows).toEqual([]);
  });

  test('are kept from MySQL to MySQL if configured', async () => {
    const stream = await streamNamed(mysql, 'zeros');
    const writer = await mysqlDestination.open(destinationConfig(mysql).ctx, targetOf(stream, { table: 'zeros_copy' }));
    const from = sourceConfig(mysql, { zero_dates: 'keep' });
    for await (const batch of mysqlSource.read(from.ctx, requestOf(stream))) await writer.write(batch);
    await writer.finish(null);
    const texts = (name: string) =>
      mysql.sql(`select id, cast(d as char) d, cast(t as char) t, cast(z as char) z from ${name} order by id`);
    expect(await texts('zeros_copy')).toEqual(await texts('zeros'));
  });
});
