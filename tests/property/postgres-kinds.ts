import * as values from './kinds.ts';
import { type Form, type Kind, quoted } from './kinds.ts';

const of = (ddl: string, form: Form, list: readonly string[], more: Partial<Kind> = {}): Kind => ({
  ddl,
  form,
  values: list,
  literal: (value) => `${quoted(value)}::${ddl}`,
  ...more,
});

/** Types of PostgreSQL. `property_kind` is an enum that the test creates. */
export const POSTGRES_KINDS: Kind[] = [
  of('integer', 'decimal', ['0', '1', '-1', '2147483647', '-2147483648'], {
    random: values.wholeNumber(9),
    wider: 'bigint',
    filters: true,
  }),
  of('text', 'text', values.TEXTS, { random: values.anyText, filters: true }),
  of('smallint', 'decimal', ['0', '32767', '-32768'], { wider: 'integer', filters: true }),
  of('bigint', 'decimal', ['0', '9223372036854775807', '-9223372036854775808', '9007199254740993'], {
    random: values.wholeNumber(18),
    filters: true,
  }),
  of(
    'numeric',
    'decimal',
    ['0', '1.50', '-0.000000000000000000000000000001', '12345678901234567890123456789012345.5'],
    {
      hard: ['NaN', 'Infinity', '-Infinity', '1e100', '1e-50', `${'9'.repeat(40)}.${'1'.repeat(40)}`],
      random: values.decimalNumber(20, 15),
    },
  ),
  of('numeric(12,2)', 'decimal', ['0', '1.5', '-9999999999.99', '0.01'], {
    hard: ['NaN'],
    random: values.decimalNumber(10, 2),
    wider: 'numeric(14,4)',
    filters: true,
  }),
  of('numeric(3,5)', 'decimal', ['0', '0.00123', '-0.00999']),
  of('numeric(40,10)', 'decimal', ['1', `${'9'.repeat(30)}.${'9'.repeat(10)}`]),
  of('real', 'single', values.SINGLES, { hard: values.NOT_FINITE }),
  of('double precision', 'double', values.DOUBLES, { hard: values.NOT_FINITE, random: values.anyDouble }),
  of('boolean', 'boolean', ['true', 'false'], { filters: true }),
  of('varchar(12)', 'text', values.SHORT_TEXTS, { wider: 'varchar(40)', filters: true }),
  of(
    'char(6)',
    'padded',
    values.SHORT_TEXTS.filter((text) => [...text].length <= 6),
  ),
  of('text', 'text', values.DIGITS, { written_as: ['integer', 'number'] }),
  of('uuid', 'uuid', values.UUIDS),
  of('date', 'date', values.DATES, { hard: values.FAR_DATES, random: values.anyDate, filters: true }),
  of('time', 'time', [...values.TIMES, ...values.MICROS], { hard: ['24:00:00'], random: values.anyTime }),
  of('time(0)', 'time', values.TIMES),
  of('timestamp', 'timestamp', values.MOMENTS, { hard: values.FAR_MOMENTS, random: values.anyMoment, filters: true }),
  of('timestamp(3)', 'timestamp', ['2026-01-31 12:00:00.123', '1969-12-31 23:59:59.999'], { wider: 'timestamp(6)' }),
  of(
    'timestamptz',
    'timestamp_tz',
    values.MOMENTS.map((at) => `${at}+00`),
    {
      hard: values.FAR_MOMENTS,
      random: values.anyMoment,
    },
  ),
  of('timetz', 'text', ['12:00:00+02', '23:59:59.999999-11:30', '24:00:00+00']),
  of(
    'interval',
    'interval',
    ['1 day', '-1 mon 2 days 03:04:05.000006', '0', '1 year -1 mon', '-00:00:00.000001', '25:00:00'],
    {
      hard: ['infinity'],
    },
  ),
  of('json', 'json', values.JSONS, { hard: ['{"a":1,"a":2}', '"\\u0000"', '{"big": 1e400}'] }),
  of('jsonb', 'json', values.JSONS, { hard: ['{"big": 1e400}'] }),
  of('bytea', 'binary', values.BYTES, {
    literal: (value) => `'\\x${value}'::bytea`,
    random: values.anyBytes,
    shown: (column) => `encode(${column}, 'hex')`,
  }),
  of('bit(5)', 'text', ['00000', '10101', '11111']),
  of('varbit', 'text', ['', '0', '1010101010101010101']),
  of('inet', 'inet', ['10.0.0.1', '10.0.0.0/8', '::1', '2001:db8::/32']),
  of('macaddr', 'text', ['08:00:2b:01:02:03']),
  of('property_kind', 'text', ['b', 'A', 'with space', "it's", 'é']),
  of('int4range', 'text', ['[1,5)', 'empty', '(,3)', '[7,)']),
  of('money', 'text', ['1.50', '-12345.67', '0']),
  of('integer[]', 'array', ['{}', '{1,NULL,-2}', '{{1,2},{3,4}}', '{2147483647}'], { hard: ['[0:1]={1,2}'] }),
  of('text[]', 'array', ['{}', '{a,"b c",NULL,"null","\\"","\\\\","{}",""}', '{é,😀}']),
  of('numeric[]', 'array', ['{1.50,NULL}', '{12345678901234567890.123456789}'], { hard: ['{NaN}'] }),
  of('boolean[]', 'array', ['{t,f,NULL}']),
];
