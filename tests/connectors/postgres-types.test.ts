import { beforeAll, describe, expect, test } from 'bun:test';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import type { StreamRow } from '../../db/schema/index.ts';
import { planTransfer } from '../../server/pipeline/transfer-plan.ts';
import { sharedFormat } from '../../server/transfer/byte-lane.ts';
import { CopyBinaryMapper } from '../../server/transfer/copy/binary-mapper.ts';
import {
  destinationConfig,
  moveStream,
  readAll,
  requestOf,
  sourceConfig,
  streamNamed,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';

const sides = twoDatabases();

const TYPES: Record<string, string[]> = {
  smallint: ['-32768', '32767'],
  integer: ['-2147483648', '0'],
  bigint: ['-9223372036854775808', '9223372036854775807'],
  numeric: [
    '0.00',
    '1.0',
    '1.00',
    '-12345678901234567890123456789.000000000000000000012345',
    'NaN',
    'Infinity',
    '-Infinity',
  ],
  'numeric(12,2)': ['-0.01', '9999999999.99'],
  real: ['1.1', 'NaN', '-Infinity', '1e-38'],
  'double precision': ['0.1', '-0', '1.7976931348623157e308', 'NaN', 'Infinity'],
  money: ['$1,234.56', '-$0.01'],
  boolean: ['true', 'false'],
  text: [
    '',
    ' ',
    '\\N',
    '\\',
    '\\.',
    'a\tb\nc\rd\\te',
    '\u0001\b\f\v\u001f\u007f',
    'ä€😀𐍈\u{10FFFD}',
    'quote \' and " double',
    '\u2028\u2029',
  ],
  'character varying(20)': ['', 'trailing  ', 'ünïcödé'],
  'character(6)': ['ab', ''],
  '"char"': ['x'],
  bytea: ['\\x', '\\x00ff5c0a0d09', '\\xdeadbeef'],
  date: ['2024-02-29', '0044-03-15 BC', 'infinity', '-infinity', '294276-12-31'],
  'time without time zone': ['23:59:59.999999', '24:00:00'],
  'time with time zone': ['12:00:00.000001+02', '00:00:00-12:30'],
  'timestamp without time zone': ['2024-12-31 23:59:59.999999', '0001-01-01 00:00:00 BC', 'infinity'],
  'timestamp(3) without time zone': ['2024-12-31 23:59:59.123'],
  'timestamp with time zone': [
    '2024-12-31 23:59:59.123456+05:30',
    '4713-01-01 00:00:00+00 BC',
    '-infinity',
    '1883-11-18 12:03:57+00',
  ],
  interval: ['1 year 2 mons -3 days +04:05:06.789', '-1 day', '0', '1 mon', '30 days', '-00:00:00.000001'],
  json: ['{"a" :  1, "a": 2}', '12345678901234567890.10', '"\\u00e9\\n\\t\\\\"', 'null'],
  jsonb: ['{"big": 12345678901234567890123, "f": 1.10}', '"tab\\tquote\\"backslash\\\\"', '[]', 'null'],
  uuid: ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
  inet: ['192.168.0.1/24', '::1'],
  cidr: ['10.0.0.0/8'],
  macaddr: ['08:00:2b:01:02:03'],
  'bit(3)': ['101'],
  'bit varying(5)': ['', '10101'],
  xml: ['<a>1 &amp; 2</a>'],
  point: ['(1.5,-2)'],
  polygon: ['((0,0),(1,1),(1,0))'],
  tsvector: ["'a':1A 'b':2"],
  int4range: ['[1,5)', 'empty'],
  tstzrange: ['["2024-01-01 00:00:00+00",)'],
  'text[]': ['{}', '{NULL,"NULL","",a,"b c","q\\"uote","back\\\\slash","new\nline","tab\t",😀}', '{{a,b},{c,d}}'],
  'integer[]': ['{1,NULL,3}', '[0:1]={1,2}'],
  'numeric(10,3)[]': ['{1.000,NaN}'],
  'timestamp with time zone[]': ['{"2024-01-01 00:00:00.000001+00"}'],
};
const names = Object.keys(TYPES).map((_, index) => `c${index}`);
const quoted = (value: string) => `'${value.replaceAll("'", "''")}'`;

const checksum = (table: string) =>
  `select md5(string_agg(t::text, '|' order by id)) as sum, count(*)::int as rows from ${table} t`;

beforeAll(async () => {
  const { sql } = sides.source;
  const types = Object.keys(TYPES);
  await sql.unsafe(
    `create table everything (id integer primary key, ${types.map((type, i) => `c${i} ${type}`).join(', ')})`,
  );
  let id = 0;
  await sql.unsafe('insert into everything (id) values (0)');
  for (const [index, type] of types.entries()) {
    for (const value of TYPES[type]!) {
      await sql.unsafe(`insert into everything (id, c${index}) values (${++id}, ${quoted(value)}::${type})`);
    }
  }
  const firsts = types.map((type) => `${quoted(TYPES[type]![0]!)}::${type}`).join(', ');
  await sql.unsafe(
    `insert into everything (id, ${names.join(', ')}) select g, ${firsts} from generate_series(1000, 9000) g`,
  );
});

describe('values survive exactly', () => {
  for (const lane of ['pgcopy-binary', 'pgcopy-text', 'rows'] as const) {
    for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
      test(`every type and value, by ${lane}, ${mode}`, async () => {
        const stream = await streamNamed(sides.source, 'everything');
        const request = requestOf(stream);
        expect(postgresSource.byteFormats!(request)).toContain('pgcopy-binary');
        const table = `everything_${lane}_${mode}`;
        const counts = await moveStream({
          from: sourceConfig(sides.source).ctx,
          to: destinationConfig(sides.destination).ctx,
          request,
          target: targetOf(stream, { table, mode, stream_id: table }),
          lane,
        });
        const [before] = await sides.source.sql.unsafe(checksum('everything'));
        const [after] = await sides.destination.sql.unsafe(checksum(`"${table}"`));
        expect({ ...after }).toEqual({ ...before });
        expect(counts.rows_loaded).toBe(before!.rows);
        const types = await streamNamed(sides.destination, table);
        expect(types.fields.map((field) => field.source_type)).toEqual(stream.fields.map((field) => field.source_type));
      });
    }
  }

  test('masked by the engine, beside values of every type in binary form', async () => {
    const stream = await streamNamed(sides.source, 'everything');
    const masked = ['smallint', 'integer', 'bigint', 'text', 'character(5)', 'character varying(20)', 'json']
      .map((type) => names[Object.keys(TYPES).indexOf(type)])
      .filter((name) => name !== undefined);
    expect(masked.length).toBeGreaterThan(4);
    const fields = masked.map((name) => ({ path: [name], selected: true, masking: 'hash_sha256' }));
    const source = { ...postgresSource, pushdown: { masking: ['none' as const], filters: false } };
    const chosen = { fields, filters: [], mapping: null, primary_key: null, cursor_field: null };
    const plan = planTransfer({ source, schema: stream, stream: chosen as unknown as StreamRow });
    const request = requestOf(stream);
    const columns = plan.columns.map(({ target }) => target);
    const to = destinationConfig(sides.destination).ctx;
    const open = (table: string) =>
      postgresDestination.open(to, targetOf(stream, { table, columns, stream_id: table }));
    const writer = await open('masked');
    expect(sharedFormat(plan, postgresSource.byteFormats!(request), writer)).toBe('pgcopy-binary');
    const copied = await postgresSource.copy!(sourceConfig(sides.source).ctx, request, 'pgcopy-binary');
    const keys = { salted: String, encrypted: String };
    const mapper = new CopyBinaryMapper(plan, keys);
    async function* chunks() {
      for await (const chunk of copied.chunks) yield mapper.map(chunk);
    }
    await writer.pipe!({ ...copied, chunks: chunks(), rowsEnd: () => 0, reuse: undefined });
    await writer.finish(null);
    const shown = stream.fields.map(({ path: [name = ''], source_type }) => {
      const text = source_type?.startsWith('character(') ? `format('%s', ${name})` : `${name}::text`;
      return masked.includes(name)
        ? `case when ${name} is not null then encode(sha256(convert_to(${text}, 'UTF8')), 'hex') end as ${name}`
        : name;
    });
    const [before] = await sides.source.sql.unsafe(checksum(`(select ${shown.join(', ')} from everything)`));
    const [after] = await sides.destination.sql.unsafe(checksum('masked'));
    expect({ ...after }).toEqual({ ...before });

    const types = columns.map(({ name }) => `${name} varchar(100)`);
    await sides.destination.sql.unsafe(`create table masked_before (${types.join(', ')})`);
    const other = await open('masked_before');
    expect(other.byteFormats).not.toContain('pgcopy-binary');
    await other.abort();
  });

  test('of another type at the destination, which the binary form cannot have', async () => {
    await sides.source.sql.unsafe(`create table other_type as select 1 as id, 1094861636 as four, 4702394921427289928 as eight,
      '41424344-4546-4748-494a-4b4c4d4e4f50'::uuid as sixteen, 1::smallint as two`);
    const stream = await streamNamed(sides.source, 'other_type');
    const types = { four: 'string', eight: 'string', sixteen: 'string', two: 'integer' };
    for (const [name, destination_type] of Object.entries(types)) {
      const fields = [{ path: [name], selected: true, destination_type, masking: 'none' }];
      const chosen = { fields, filters: [], mapping: null, primary_key: null, cursor_field: null };
      const plan = planTransfer({ source: postgresSource, schema: stream, stream: chosen as unknown as StreamRow });
      const columns = plan.columns.map(({ target }) => target);
      const target = targetOf(stream, { table: `other_${name}`, columns, stream_id: name });
      const writer = await postgresDestination.open(destinationConfig(sides.destination).ctx, target);
      const format = sharedFormat(plan, postgresSource.byteFormats!(requestOf(stream)), writer);
      expect(format).toBe('pgcopy-text');
      await writer.pipe!(await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), format!));
      await writer.finish(null);
      const shown = stream.fields.map(({ path: [own] }) =>
        own === name && destination_type === 'string' ? `${own}::text` : own,
      );
      const [before] = await sides.source.sql.unsafe(checksum(`(select ${shown.join(', ')} from other_type)`));
      const [after] = await sides.destination.sql.unsafe(checksum(`other_${name}`));
      expect({ ...after }).toEqual({ ...before });
    }
  });

  test('the row lane returns canonical text', async () => {
    await sides.source.sql.unsafe(`create table canonical as select true as b, '\\x00ff'::bytea as y,
      '2024-12-31 23:59:59.123456+05:30'::timestamptz as t, ''::text as e, null::text as n, 1e20::float8 as f, '{"a":1}'::jsonb as j`);
    const stream = await streamNamed(sides.source, 'canonical');
    const { rows } = await readAll(sourceConfig(sides.source).ctx, requestOf(stream));
    expect(rows).toEqual([['true', '\\x00ff', '2024-12-31 18:29:59.123456+00', '', null, '1e+20', '{"a": 1}']]);
  });

  test('enums, domains and arrays of enums arrive as plain types, and only as text', async () => {
    await sides.source.sql.unsafe(`create type mood as enum ('sad', 'it''s ok'); create domain price as numeric(8,2) check (value > 0);
      create table own (id int primary key, m mood, p price, ms mood[]);
      insert into own values (1, 'it''s ok', 1.50, '{sad,NULL,"it''s ok"}')`);
    const stream = await streamNamed(sides.source, 'own');
    expect(stream.fields.map(({ source_type, type }) => [source_type, type])).toEqual([
      ['integer', 'integer'],
      ['public.mood', 'string'],
      ['public.price', 'number'],
      ['public.mood[]', 'array'],
    ]);
    expect(postgresSource.byteFormats!(requestOf(stream))).toEqual(['pgcopy-text']);
    const to = destinationConfig(sides.destination).ctx;
    const writer = await postgresDestination.open(to, targetOf(stream));
    expect(writer.byteFormats).toEqual(['pgcopy-text']);
    await writer.pipe!(await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), 'pgcopy-text'));
    await writer.finish(null);
    const [row] = await sides.destination.sql.unsafe('select id, m, p::text as p, ms from own');
    expect({ ...row }).toEqual({ id: 1, m: "it's ok", p: '1.50', ms: `{sad,NULL,"it's ok"}` });
  });

  test('an existing table with other types rejects the binary form and converts text', async () => {
    await sides.source.sql.unsafe(
      'create table narrow (id integer, v varchar(20)); insert into narrow values (7, $$x$$)',
    );
    await sides.destination.sql.unsafe('create table narrow (id bigint, v text)');
    const stream = await streamNamed(sides.source, 'narrow');
    const writer = await postgresDestination.open(destinationConfig(sides.destination).ctx, targetOf(stream));
    expect(writer.byteFormats).toEqual(['pgcopy-text']);
    await writer.pipe!(await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), 'pgcopy-text'));
    await writer.finish(null);
    expect([...(await sides.destination.sql.unsafe('select id::text, v from narrow'))]).toEqual([
      { id: '7', v: 'x' },
    ] as never);
  });

  test('each lane counts rows and bytes exactly, also for an empty table', async () => {
    await sides.source.sql.unsafe(
      'create table counted as select g as id from generate_series(1, 12345) g; create table none (id int)',
    );
    for (const format of ['pgcopy-binary', 'pgcopy-text'] as const) {
      for (const [name, expected] of [
        ['counted', 12345],
        ['none', 0],
      ] as const) {
        const copy = await postgresSource.copy!(
          sourceConfig(sides.source).ctx,
          requestOf(await streamNamed(sides.source, name)),
          format,
        );
        for await (const _ of copy.chunks);
        expect([name, format, copy.rows()]).toEqual([name, format, expected]);
      }
    }
  });
});
