import * as values from './kinds.ts';
import { type Form, hexOf, type Kind, quoted } from './kinds.ts';

const of = (ddl: string, form: Form, list: readonly string[], more: Partial<Kind> = {}): Kind => ({
  ddl,
  form,
  values: list,
  literal: quoted,
  ...more,
});
const textLiteral = (value: string) => `convert(x'${hexOf(value)}' using utf8mb4)`;
const text = (ddl: string, list: readonly string[], more: Partial<Kind> = {}): Kind =>
  of(ddl, 'text', list, { literal: textLiteral, ...more });
const number = (ddl: string, list: readonly string[], more: Partial<Kind> = {}): Kind =>
  of(ddl, 'decimal', list, { literal: (value) => value, filters: true, ...more });
const bytes = (ddl: string, list: readonly string[], more: Partial<Kind> = {}): Kind =>
  of(ddl, 'binary', list, {
    literal: (value) => `x'${value}'`,
    shown: (column) => `lower(hex(${column}))`,
    ...more,
  });
/** MySQL pads DATETIME(0) differently from DATETIME(6), and has no years before the first. */
const after = (year: string, list: readonly string[]) => list.filter((value) => value >= year);

/** Types of MySQL and MariaDB, at a server of MariaDB. */
export const MYSQL_KINDS: Kind[] = [
  number('int', ['0', '1', '-1', '2147483647', '-2147483648'], { random: values.wholeNumber(9), wider: 'bigint' }),
  text('text', values.TEXTS, { random: values.anyText, filters: true }),
  number('tinyint', ['0', '127', '-128'], { wider: 'int' }),
  number('tinyint(1)', ['0', '1', '2', '-1']),
  number('int unsigned', ['0', '4294967295'], { wider: 'bigint unsigned' }),
  number('mediumint unsigned zerofill', ['7', '16777215'], { filters: false }),
  number('bigint', ['9223372036854775807', '-9223372036854775808', '9007199254740993'], {
    random: values.wholeNumber(18),
  }),
  number('bigint unsigned', ['0', '18446744073709551615', '9223372036854775808']),
  number('decimal(12,2)', ['0', '1.5', '-9999999999.99', '0.01'], {
    random: values.decimalNumber(10, 2),
    wider: 'decimal(14,4)',
  }),
  number('decimal(65,30)', ['1', `${'9'.repeat(35)}.${'9'.repeat(30)}`, '-0.000000000000000000000000000001']),
  number('decimal(10,0)', ['0', '-9999999999']),
  of('float', 'single', values.SINGLES, { literal: (value) => value, shown: (column) => `cast(${column} as double)` }),
  of(
    'double',
    'double',
    values.DOUBLES.filter((value) => !value.endsWith('-324')),
    {
      literal: (value) => `${value}e0`.replace(/(e.*)e0$/, '$1'),
      random: values.anyDouble,
    },
  ),
  of('bit(1)', 'boolean', ['true', 'false'], {
    literal: (value) => (value === 'true' ? `b'1'` : `b'0'`),
    shown: (column) => `if(${column}, 'true', 'false')`,
  }),
  of('bit(10)', 'text', ['0', '1', '1111111111', '1010'], {
    literal: (value) => `b'${value}'`,
    shown: (column) => `lpad(bin(${column} + 0), 10, '0')`,
  }),
  of('date', 'date', after('1000', values.DATES), { filters: true }),
  of('datetime', 'timestamp', ['2026-01-31 12:34:56', '1000-01-01 00:00:00', '9999-12-31 23:59:59'], {
    wider: 'datetime(6)',
    filters: true,
  }),
  of('datetime(6)', 'timestamp', after('1000', values.MOMENTS)),
  of('datetime(3)', 'timestamp', ['2026-01-31 12:00:00.123', '1969-12-31 23:59:59.999']),
  of(
    'timestamp(6) null',
    'timestamp_tz',
    ['2026-01-31 12:34:56.123456', '1970-01-01 00:00:01', '2038-01-19 03:14:07.999999'],
    {
      shown: (column) => `concat(${column}, '+00')`,
    },
  ),
  of('time(3)', 'text', ['12:34:56.789', '-838:59:59.000', '838:59:59.000', '00:00:00.001'], {
    shown: (column) => `cast(${column} as char)`,
  }),
  number('year', ['2026', '1901', '2155', '0'], { filters: false }),
  text('varchar(40)', values.SHORT_TEXTS, { wider: 'varchar(80)', filters: true }),
  text('varchar(40) character set latin1', ['a', 'é', 'ÿ', '', 'A ', '€']),
  text('varchar(40) collate utf8mb4_bin', values.SHORT_TEXTS, { filters: true }),
  text('varchar(40)', values.DIGITS, { written_as: ['integer', 'number'] }),
  of(
    'char(6)',
    'padded',
    values.SHORT_TEXTS.filter((value) => [...value].length <= 6),
    { literal: textLiteral },
  ),
  text('longtext', values.TEXTS, { random: values.anyText }),
  bytes('blob', values.BYTES, { random: values.anyBytes }),
  bytes('varbinary(30)', values.BYTES),
  bytes('binary(4)', ['00', 'ff00ff00', '61']),
  text("enum('a', 'B', 'with space', 'é')", ['a', 'B', 'with space', 'é']),
  text("set('a', 'b', 'c')", ['', 'a', 'a,c', 'a,b,c']),
  of('json', 'json', values.JSONS, { literal: textLiteral }),
  of('uuid', 'uuid', values.UUIDS),
  text('inet6', ['::1', '2001:db8::1']),
];
