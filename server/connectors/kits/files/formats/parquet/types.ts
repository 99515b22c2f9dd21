import type { LogicalType } from '../../../../contract/connector.ts';
import { literal } from '../../../duckdb/instance.ts';

/** The logical type of a type of DuckDB. */
export function logicalType(type: string): LogicalType {
  if (type.endsWith(']')) return 'array';
  if (/^(STRUCT|MAP|UNION|JSON)/.test(type)) return 'json';
  if (/^(TINYINT|SMALLINT|INTEGER|BIGINT|UTINYINT|USMALLINT|UINTEGER)$/.test(type)) return 'integer';
  if (/^(UBIGINT|U?HUGEINT|FLOAT|DOUBLE|DECIMAL)/.test(type)) return 'number';
  if (type === 'BOOLEAN') return 'boolean';
  if (type === 'DATE') return 'date';
  if (type === 'TIMESTAMP WITH TIME ZONE') return 'timestamp_tz';
  if (type.startsWith('TIMESTAMP')) return 'timestamp';
  if (type === 'TIME') return 'time';
  return type === 'BLOB' ? 'binary' : 'string';
}

/** DuckDB's limit. */
const MAX_DIGITS = 38;

/** The type that holds the values of both, as two files have them; null: none, so that only the logical type counts. */
export function typeOfBoth(one: string | null, other: string | null): string | null {
  if (one === other || one === null || other === null) return one === other ? one : null;
  const pair = [one, other];
  if (pair.every((type) => type === 'FLOAT' || type === 'DOUBLE')) return 'DOUBLE';
  const decimals = pair.map((type) => /^DECIMAL\((\d+),(\d+)\)$/.exec(type));
  if (decimals.includes(null)) return null;
  const scale = Math.max(...decimals.map((found) => Number(found![2])));
  const digits = scale + Math.max(...decimals.map((found) => Number(found![1]) - Number(found![2])));
  return digits <= MAX_DIGITS ? `DECIMAL(${digits},${scale})` : null;
}

/** What DuckDB says of a time that microseconds cannot hold, after the column and the value. */
export const TOO_FINE = 'is finer than a microsecond';

/** SQL for the canonical text of a column as one of the logical type. */
export const textAs = (type: LogicalType, column: string, native: string): string =>
  native === 'TIMESTAMP_NS' && type === 'string' ? `CAST(${column} AS VARCHAR)` : canonical(column, native);

/** SQL for the canonical text of a column. */
export function canonical(column: string, type: string): string {
  const text = `CAST(${column} AS VARCHAR)`;
  if (type === 'BLOB') return `'\\x' || lower(hex(${column}))`;
  if (type === 'FLOAT' || type === 'DOUBLE') {
    return `CASE ${text} WHEN 'nan' THEN 'NaN' WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity' ELSE ${text} END`;
  }
  if (type === 'TIMESTAMP_NS') {
    const failed = `error(${literal(`column ${column}: `)} || ${text} || ' ${TOO_FINE}')`;
    return `CASE WHEN ${isTooFine(column)} THEN ${failed} ELSE CAST(CAST(${column} AS TIMESTAMP) AS VARCHAR) END`;
  }
  if (type === 'TIMESTAMP WITH TIME ZONE') {
    // The cast gives the same result but calls the time zone library for each value.
    const plain = `CAST(make_timestamp(epoch_us(${column})) AS VARCHAR) || '+00'`;
    return `CASE WHEN isfinite(${column}) THEN ${withEra(column, plain)} ELSE ${text} END`;
  }
  if (type === 'DATE' || type.startsWith('TIMESTAMP')) return withEra(column, text);
  return ['array', 'json'].includes(logicalType(type)) && type !== 'JSON'
    ? `CAST(to_json(${column}) AS VARCHAR)`
    : text;
}

export const isTooFine = (column: string) => `(isfinite(${column}) AND epoch_ns(${column}) % 1000 <> 0)`;

/** DuckDB writes "(BC)" behind the date. */
const withEra = (column: string, text: string) =>
  `CASE WHEN ${column} < '0001-01-01' AND isfinite(${column}) THEN replace(${text}, ' (BC)', '') || ' BC' ELSE ${text} END`;

/** Types whose text never contains a character that COPY escapes. */
export const PLAIN_TEXT: ReadonlySet<string> = new Set([
  'integer',
  'number',
  'boolean',
  'date',
  'timestamp',
  'timestamp_tz',
  'time',
]);

/** SQL that escapes a text for COPY. */
export function escaped(text: string): string {
  const steps = [
    ['\\', '\\\\'],
    ['\t', '\\t'],
    ['\n', '\\n'],
    ['\r', '\\r'],
  ] as const;
  const replaced = steps.reduce((sql, [from, to]) => `replace(${sql}, ${literal(from)}, ${literal(to)})`, text);
  const needed = steps.map(([from]) => `contains(${text}, ${literal(from)})`).join(' OR ');
  return `CASE WHEN ${needed} THEN ${replaced} ELSE ${text} END`;
}
