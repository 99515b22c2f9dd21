import type { Cell } from '../contract/cells.ts';
import { DataError } from '../contract/errors.ts';
import type { TargetColumn } from '../contract/writer.ts';
import { JSON_NUMBER } from './array-text.ts';
import { isJson } from './text-rules.ts';
import { parseTime, rfc3339 } from './timestamp-text.ts';
import { shortened } from './value-gate.ts';

/** How values without a JSON form of their own are written. */
export interface JsonStyle {
  /** `rfc3339`: `2026-01-31T23:59:59Z` where a time has that form. `cell`: as cells have it. */
  times: 'rfc3339' | 'cell';
  bytes: 'base64' | 'cell';
}

/** Encodes rows as JSON objects on one line each: numbers with all digits; what JSON has no form for is a string. */
export function jsonRowEncoder(columns: readonly TargetColumn[], style: JsonStyle): (row: readonly Cell[]) => string {
  const writers = columns.map((column, at) => {
    const key = `${at === 0 ? '{' : ','}${JSON.stringify(column.name)}:`;
    const value = valueWriter(column, style);
    return (cell: Cell) => key + (cell === null ? 'null' : value(cell));
  });
  return (row) => `${writers.map((write, at) => write(row[at] ?? null)).join('')}}`;
}

const quoted = (cell: string) => JSON.stringify(cell);
/** A line feed would end the row. */
const onOneLine = (json: string) => json.replaceAll(/[\r\n]/g, ' ');

function valueWriter(column: TargetColumn, { times, bytes }: JsonStyle): (cell: string) => string {
  const { type } = column;
  switch (type) {
    case 'integer':
    case 'number':
      // PostgreSQL's NaN and Infinity are not JSON numbers.
      return (cell) => (JSON_NUMBER.test(cell) ? cell : quoted(cell));
    case 'boolean':
      return (cell) => (cell === 'true' || cell === 'false' ? cell : quoted(cell));
    case 'json':
    case 'array':
      return nestedWriter(column);
    case 'timestamp_tz':
      return times === 'cell' ? quoted : (cell) => quoted(zoned(cell));
    case 'timestamp':
      return times === 'cell' ? quoted : (cell) => quoted(cell.endsWith(' BC') ? cell : cell.replace(' ', 'T'));
    case 'binary':
      return bytes === 'cell' ? quoted : (cell) => quoted(base64(cell, column.name));
    default:
      return quoted;
  }
}

/** PostgreSQL's own arrays have the form `{…}` or `[0:1]={…}`, which is not JSON. */
function nestedWriter({ name, type, source_type, dialect }: TargetColumn): (cell: string) => string {
  const isPostgres = dialect === 'postgres' && source_type !== null;
  if (isPostgres && type === 'array') return quoted;
  if (isPostgres) return onOneLine;
  return (cell) => {
    if (isJson(cell)) return onOneLine(cell);
    throw new DataError('value_does_not_fit', `${name} has ${shortened(cell)}, which is not JSON`);
  };
}

function zoned(cell: string): string {
  const time = parseTime(cell);
  return (time && rfc3339(time)) ?? cell;
}

function base64(cell: string, name: string): string {
  const bytes = Buffer.from(cell.slice(2), 'hex');
  if (cell.startsWith('\\x') && bytes.length * 2 === cell.length - 2) return bytes.toString('base64');
  throw new DataError('value_does_not_fit', `${name} has ${shortened(cell)}, which is not hexadecimal`);
}
