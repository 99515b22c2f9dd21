import type { Cell, TargetColumn } from '../contract/connector.ts';
import { jsonRowEncoder } from '../cells/json-writer.ts';
import type { HttpDestinationConfig } from './settings.ts';

/** Times in RFC 3339, bytes in Base64. */
export const rowEncoder = (columns: TargetColumn[]): ((row: readonly Cell[]) => string) =>
  jsonRowEncoder(columns, { times: 'rfc3339', bytes: 'base64' });

/** The request body for a batch of encoded rows. */
export function batchBody({ format, rows_key, envelope }: HttpDestinationConfig, rows: readonly string[]): string {
  if (format === 'jsonl') return rows.map((row) => `${row}\n`).join('');
  const list = `[${rows.join(',')}]`;
  if (format === 'array') return list;
  const rest = JSON.stringify({ ...envelope, [rows_key]: undefined });
  return `${rest.slice(0, -1)}${rest === '{}' ? '' : ','}${JSON.stringify(rows_key)}:${list}}`;
}
