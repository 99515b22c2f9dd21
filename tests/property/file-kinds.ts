import * as values from './kinds.ts';
import { type Form, hexOf, type Kind, quoted } from './kinds.ts';

const duck = (ddl: string, form: Form, list: readonly string[], more: Partial<Kind> = {}): Kind => ({
  ddl,
  form,
  values: list,
  literal: (value) => `${quoted(value)}::${ddl}`,
  ...more,
});
const textOfBytes = (value: string) =>
  value === '' ? "''" : `decode('${hexOf(value).replaceAll(/../g, String.raw`\x$&`)}'::blob)`;

export const DUCKDB_KINDS: Kind[] = [
  duck('INTEGER', 'decimal', ['0', '1', '-1', '2147483647', '-2147483648'], {
    random: values.wholeNumber(9),
    wider: 'BIGINT',
    filters: true,
  }),
  duck('VARCHAR', 'text', values.TEXTS, {
    literal: textOfBytes,
    hard: ['a\0b'],
    random: values.anyText,
    filters: true,
  }),
  duck('TINYINT', 'decimal', ['0', '127', '-128'], { wider: 'INTEGER', filters: true }),
  duck('UINTEGER', 'decimal', ['0', '4294967295']),
  duck('BIGINT', 'decimal', ['9223372036854775807', '-9223372036854775808'], { random: values.wholeNumber(18) }),
  duck('UBIGINT', 'decimal', ['0', '18446744073709551615']),
  duck('HUGEINT', 'decimal', ['0', '170141183460469231731687303715884105727', '-12345678901234567890123']),
  duck('DECIMAL(12,2)', 'decimal', ['0', '1.5', '-9999999999.99', '0.01'], {
    random: values.decimalNumber(10, 2),
    wider: 'DECIMAL(18,4)',
    filters: true,
  }),
  duck('DECIMAL(38,10)', 'decimal', ['1', `${'9'.repeat(28)}.${'9'.repeat(10)}`]),
  duck('FLOAT', 'single', values.SINGLES, { hard: values.NOT_FINITE }),
  duck('DOUBLE', 'double', values.DOUBLES, { hard: values.NOT_FINITE, random: values.anyDouble }),
  duck('BOOLEAN', 'boolean', ['true', 'false'], { filters: true }),
  duck('DATE', 'date', values.DATES, {
    hard: ['10000-01-01', '0044-03-15 (BC)', 'infinity', '-infinity'],
    random: values.anyDate,
    filters: true,
  }),
  duck('TIME', 'time', [...values.TIMES, ...values.MICROS], { random: values.anyTime }),
  duck('TIMESTAMP', 'timestamp', values.MOMENTS, {
    hard: ['10000-01-01 00:00:00.5', 'infinity', '-infinity', '0044-03-15 (BC) 12:00:00'],
    random: values.anyMoment,
    filters: true,
  }),
  duck('TIMESTAMP_MS', 'timestamp', ['2026-01-31 12:00:00.123', '1969-12-31 23:59:59.999']),
  duck('TIMESTAMP_S', 'timestamp', ['2026-01-31 12:00:00']),
  duck('TIMESTAMP_NS', 'text', ['2026-01-31 12:00:00.123456789', '1969-12-31 23:59:59.999999999']),
  duck(
    'TIMESTAMPTZ',
    'timestamp_tz',
    values.MOMENTS.map((at) => `${at}+00`),
    {
      hard: ['infinity', '0044-03-15 (BC) 12:00:00+00'],
    },
  ),
  duck('INTERVAL', 'interval', ['1 day', '14 months -2 days 03:04:05.000006', '0 days', '-1 year']),
  duck('JSON', 'json', values.JSONS, { literal: textOfBytes }),
  duck('BLOB', 'binary', values.BYTES, {
    literal: (value) => `unhex('${value}')`,
    random: values.anyBytes,
    shown: (column) => `lower(hex(${column}))`,
  }),
  duck('UUID', 'uuid', values.UUIDS),
  duck('BIT', 'text', ['0', '1', '10101010101']),
  duck("ENUM('a', 'B', 'with space', 'é')", 'text', ['a', 'B', 'with space', 'é']),
  duck('INTEGER[]', 'array', ['[]', '[1, NULL, -2]'], { shown: (column) => `to_json(${column})::varchar` }),
  duck('VARCHAR[]', 'array', ['[]', "['a', 'b c', NULL]", "['é']"], {
    shown: (column) => `to_json(${column})::varchar`,
  }),
  duck('STRUCT(a INTEGER, b VARCHAR)', 'json', ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': 'é'}"], {
    shown: (column) => `to_json(${column})::varchar`,
  }),
  duck('VARCHAR', 'text', values.DIGITS, { written_as: ['integer', 'number'] }),
];

const lite = (ddl: string, form: Form, list: readonly string[], more: Partial<Kind> = {}): Kind => ({
  ddl,
  form,
  values: list,
  literal: quoted,
  ...more,
});
const liteText = (value: string) => `cast(x'${hexOf(value)}' as text)`;
const plain = (value: string) => value;

/** SQLite accepts any value in any column: `blob` as a declared type keeps what is stored. */
export const SQLITE_KINDS: Kind[] = [
  lite('integer', 'decimal', ['0', '1', '-1', '9223372036854775807', '-9223372036854775808'], {
    literal: plain,
    random: values.wholeNumber(18),
    filters: true,
  }),
  lite('text', 'text', values.TEXTS, { literal: liteText, hard: ['a\0b'], random: values.anyText, filters: true }),
  lite(
    'real',
    'double',
    values.DOUBLES.filter((value) => !/^9007|-324$/.test(value)),
    {
      literal: (value) => (/[.e]/.test(value) ? value : `${value}.0`),
      random: values.anyDouble,
      shown: (column) => column,
    },
  ),
  lite('boolean', 'boolean', ['true', 'false'], {
    literal: (value) => (value === 'true' ? '1' : '0'),
    shown: (column) => `case ${column} when 1 then 'true' when 0 then 'false' end`,
  }),
  lite('date', 'date', values.DATES, { random: values.anyDate, filters: true }),
  lite('datetime', 'timestamp', values.MOMENTS, { random: values.anyMoment }),
  lite('timestamp', 'timestamp_tz', ['2026-01-31T12:34:56Z', '0099-03-01T00:00:00Z', '9999-12-31T23:59:59Z'], {
    shown: (column) => `replace(${column}, 'Z', '+00')`,
  }),
  lite('json', 'json', values.JSONS, { literal: liteText }),
  lite('blob', 'binary', values.BYTES, {
    literal: (value) => `x'${value}'`,
    random: values.anyBytes,
    shown: (column) => `lower(hex(${column}))`,
  }),
  lite('varchar(12)', 'text', values.SHORT_TEXTS, { literal: liteText, filters: true }),
  lite('text', 'text', values.DIGITS, { literal: liteText, written_as: ['integer', 'number'] }),
];
