import type { Cell, TargetColumn } from '../contract/connector.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { HttpDestinationConfig } from './settings.ts';

/** As in JSON: PostgreSQL also has NaN, Infinity. */
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The JSON object of a row: numbers with all their digits, times in RFC 3339, bytes in Base64. */
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
    // A line of JSON Lines ends at the first line feed.
    case 'json':
      return (cell) => cell.replaceAll(/[\r\n]/g, ' ');
    // PostgreSQL's own arrays come as {…}, which may be no JSON.
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

/** `infinity` and years that RFC 3339 does not know stay as they are. */
function zoned(cell: string): string {
  const micros = microsOf(cell);
  if (!Number.isFinite(micros)) return cell;
  const text = timestampText(micros);
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${text.slice(19, 26).replace(/\.?0+$/, '')}Z`;
}

/** What a batch of encoded rows is sent as. */
export function batchBody({ format, rows_key, envelope }: HttpDestinationConfig, rows: readonly string[]): string {
  if (format === 'jsonl') return rows.map((row) => `${row}\n`).join('');
  const list = `[${rows.join(',')}]`;
  if (format === 'array') return list;
  const rest = JSON.stringify({ ...envelope, [rows_key]: undefined });
  return `${rest.slice(0, -1)}${rest === '{}' ? '' : ','}${JSON.stringify(rows_key)}:${list}}`;
}
