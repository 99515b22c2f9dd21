import type { TargetColumn } from '../../../../contract/connector.ts';
import { jsonRowEncoder } from '../../../../cells/json-writer.ts';
import type { TextEncoding } from '../text-output.ts';

/** One object per line with every column. Times and bytes have the form of cells. */
export function jsonlEncoder(columns: TargetColumn[]): TextEncoding {
  const encode = jsonRowEncoder(columns, { times: 'cell', bytes: 'cell' });
  return { head: '', rows: (rows) => rows.map((row) => `${encode(row)}\n`).join('') };
}
