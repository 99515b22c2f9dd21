/** How the values of two databases are compared: each form has one canonical text, computed by the databases. */
export type Form =
  | 'text'
  | 'padded'
  | 'decimal'
  | 'double'
  | 'single'
  | 'boolean'
  | 'date'
  | 'timestamp'
  | 'timestamp_tz'
  | 'time'
  | 'interval'
  | 'uuid'
  | 'inet'
  | 'json'
  | 'array'
  | 'binary';

export type Dialect = 'postgres' | 'mysql' | 'duckdb' | 'sqlite';

/** A column type with values worth testing. */
export interface Kind {
  /** As in CREATE TABLE. */
  ddl: string;
  form: Form;
  /** Values that every destination can store. */
  values: readonly string[];
  /** Values that some destination refuses. */
  hard?: readonly string[];
  /** An SQL expression with the value. */
  literal(value: string): string;
  /** Any other value. */
  random?(next: () => number): string;
  /** A wider type of the same form, for changes of the schema. */
  wider?: string;
  /** A filter on it means the same in every database. */
  filters?: boolean;
  /** SQL of the value as text, where it is not a plain cast. */
  shown?(column: string): string;
  /** Types to which its texts can be cast. */
  written_as?: readonly string[];
}

export const TEXTS = [
  'a',
  '',
  ' ',
  'A',
  'a ',
  ' a',
  '\t',
  '\n',
  '\r\n',
  '\\',
  '\\N',
  '\\.',
  "'",
  '"',
  '{}',
  'NULL',
  'é',
  'e\u0301',
  'ß',
  'İ',
  '😀',
  '\u{10ffff}',
  '\uFEFFa',
  '\uffff',
  '\u0001',
  '\u007f',
  '\u0085',
  '\u2028',
  'a,b;"c"|d',
  '%s',
  '`',
  '🏳️‍🌈',
  '012',
  '1e3',
  'true',
  'x'.repeat(3000),
];
export const SHORT_TEXTS = ['a', '', 'A', 'a ', ' ', 'é', '😀', '\\', "'", '"', '\t', 'ß', '12', '  b  '];
export const DIGITS = ['0', '7', '-12', '2147483648', '-9223372036854775808', '42'];
export const DATES = [
  '2026-01-31',
  '1970-01-01',
  '0001-01-01',
  '1582-10-10',
  '2024-02-29',
  '1000-01-01',
  '9999-12-31',
  '0099-03-01',
];
export const FAR_DATES = ['10000-01-01', '0044-03-15 BC', 'infinity', '-infinity', '4714-11-24 BC'];
export const TIMES = ['12:34:56', '00:00:00', '23:59:59', '01:02:03'];
export const MICROS = ['12:34:56.123456', '00:00:00.000001', '23:59:59.999999', '01:02:03.1', '01:02:03.100'];
export const MOMENTS = DATES.flatMap((day, index) => [
  `${day} ${MICROS[index % MICROS.length]}`,
  `${day} ${TIMES[index % TIMES.length]}`,
]);
export const FAR_MOMENTS = [
  '10000-01-01 00:00:00.5',
  'infinity',
  '-infinity',
  '0044-03-15 12:00:00 BC',
  '200000-01-01 00:00:00',
];
export const UUIDS = [
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
];
export const BYTES = ['', '00', 'ff', 'deadbeef', '5c6e', '0a0d09', '5c', '27', 'c328', '5c78'];
export const DOUBLES = [
  '0',
  '1',
  '-1.5',
  '0.1',
  '1e15',
  '1e-7',
  '123456789.123456789',
  '1e300',
  '-2.2250738585072014e-308',
  '1.7976931348623157e308',
  '4.9406564584124654e-324',
  '9007199254740993',
  '1e21',
];
export const SINGLES = [
  '0',
  '1',
  '-1.5',
  '0.1',
  '16777216',
  '3.402823e38',
  '1.17549435e-38',
  '1e-7',
  '123456.7',
  '1e10',
];
export const NOT_FINITE = ['NaN', 'Infinity', '-Infinity', '-0'];
export const JSONS = [
  '{}',
  '[]',
  'null',
  'true',
  '""',
  '"é😀"',
  '1',
  '-0.5',
  '1e3',
  '12345678901234567890',
  '1.00',
  '0.1234567890123456789',
  '{"a": 1, "b": [null, true, {"c": "\\u00e9"}]}',
  '{"": {"": []}}',
  '"\\n\\t\\\\\\""',
  '["\\ud83d\\ude00"]',
  '{"b": 2, "a": 1}',
];

export const quoted = (value: string): string => `'${value.replaceAll("'", "''")}'`;
export const hexOf = (value: string): string => Buffer.from(value, 'utf8').toString('hex');
const between = (next: () => number, low: number, high: number) => low + Math.floor(next() * (high - low + 1));

/** A whole number of at most so many digits. */
export const wholeNumber = (digits: number) => (next: () => number) => {
  const length = between(next, 1, digits);
  const text = Array.from({ length }, () => between(next, 0, 9))
    .join('')
    .replace(/^0+(?=\d)/, '');
  return next() < 0.4 && text !== '0' ? `-${text}` : text;
};
export const decimalNumber = (whole: number, scale: number) => (next: () => number) => {
  const fraction = Array.from({ length: between(next, 0, scale) }, () => between(next, 0, 9)).join('');
  return `${wholeNumber(whole)(next)}${fraction && `.${fraction}`}`;
};
export const anyDouble = (next: () => number): string =>
  String((next() - 0.5) * 10 ** between(next, -20, 20) * (next() < 0.3 ? 1e15 : 1));
export const anyText = (next: () => number): string =>
  Array.from({ length: between(next, 1, 12) }, () => {
    const [low, high] = [
      [32, 126],
      [0xa0, 0x2ff],
      [0x4e00, 0x4eff],
      [0x1f600, 0x1f64f],
    ][between(next, 0, 3)] as [number, number];
    return String.fromCodePoint(between(next, low, high));
  }).join('');
const pad = (value: number, digits: number) => String(value).padStart(digits, '0');
export const anyDate = (next: () => number): string =>
  `${pad(between(next, 1, 9999), 4)}-${pad(between(next, 1, 12), 2)}-${pad(between(next, 1, 28), 2)}`;
export const anyTime = (next: () => number): string =>
  `${pad(between(next, 0, 23), 2)}:${pad(between(next, 0, 59), 2)}:${pad(between(next, 0, 59), 2)}.${pad(between(next, 0, 999_999), 6)}`;
export const anyMoment = (next: () => number): string => `${anyDate(next)} ${anyTime(next)}`;
export const anyBytes = (next: () => number): string =>
  Array.from({ length: between(next, 1, 20) }, () => pad(between(next, 0, 255), 3))
    .map((byte) => Number(byte).toString(16).padStart(2, '0'))
    .join('');
