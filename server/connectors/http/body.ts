import type { Cell, TargetColumn } from '../contract/connector.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { HttpDestinationConfig } from './settings.ts';

/** PostgreSQL's NaN and Infinity are not JSON numbers. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Encodes rows as JSON objects: numbers with all digits, times in RFC 3339, bytes in Base64. */
export function rowEncoder(columns: TargetColumn[]): (row: Cell[]) => string {
  const writers = columns.map((column, at) => {
    const key = `${at === 0 ? '{' : ','}${JSON.stringify(column.name)}:`;
    const value = valueWriter(column);
    return (cell: Cell) => key + (cell === null ? 'null' : value(cell));
  });
  return (row) => `${writers.map((write, at) => write(row[at] ?? null)).join('')}}`;
}

function valueWriter({ type }: TargetColumn): (cell: string) => string {
  switch (type) {
    case 'integer':
    case 'number':
      return (cell) => (JSON_NUMBER.test(cell) ? cell : JSON.stringify(cell));
    case 'boolean':
      return (cell) => cell;
    // JSON Lines: a line feed would end the row.
    case 'json':
      return (cell) => cell.replaceAll(/[\r\n]/g, ' ');
    // PostgreSQL's own arrays come as {…}, which is not JSON.
    case 'array':
      return (cell) => (cell.startsWith('[') ? cell.replaceAll(/[\r\n]/g, ' ') : JSON.stringify(cell));
    case 'timestamp_tz':
      return (cell) => JSON.stringify(zoned(cell));
    case 'timestamp':
      return (cell) => JSON.stringify(cell.replace(' ', 'T'));
    case 'binary':
      return (cell) => JSON.stringify(Buffer.from(cell.slice(2), 'hex').toString('base64'));
    default:
      return (cell) => JSON.stringify(cell);
  }
}

/** `infinity` and years outside RFC 3339 stay unchanged. */
function zoned(cell: string): string {
  const micros = microsOf(cell);
  if (!Number.isFinite(micros)) return cell;
  const text = timestampText(micros);
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${text.slice(19, 26).replace(/\.?0+$/, '')}Z`;
}

/** The request body for a batch of encoded rows. */
export function batchBody({ format, rows_key, envelope }: HttpDestinationConfig, rows: readonly string[]): string {
  if (format === 'jsonl') return rows.map((row) => `${row}\n`).join('');
  const list = `[${rows.join(',')}]`;
  if (format === 'array') return list;
  const rest = JSON.stringify({ ...envelope, [rows_key]: undefined });
  return `${rest.slice(0, -1)}${rest === '{}' ? '' : ','}${JSON.stringify(rows_key)}:${list}}`;
}
