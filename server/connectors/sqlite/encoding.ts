import type { Database } from 'bun:sqlite';
import type { Field } from '../contract/connector.ts';
import { DataError } from '../contract/errors.ts';
import { shortened } from '../cells/value-gate.ts';
import { BREATH_ROWS, breathe } from './database.ts';
import { type Condition, columnOf } from './position.ts';

/** What the driver shows in place of bytes that are not UTF-8. A text may also contain it itself. */
export const REPLACEMENT = '\ufffd';

export interface TextColumn {
  stream: string;
  field: Field;
  /** SQL of the rows that are read: of those in `from`, the ones for which `wanted` is true. */
  from: string;
  wanted: string;
  values: Condition['values'];
}

/**
 * SQLite stores any bytes as text, and the driver replaces what is not UTF-8. Called once a column has shown such a
 * character: reads the bytes of the column. @throws DataError for a text that is not UTF-8
 */
export async function assertUtf8(
  database: Database,
  { stream, field, from, wanted, values }: TextColumn,
): Promise<void> {
  const [[encoding] = []] = database.query('pragma encoding').values();
  if (encoding !== 'UTF-8') return;
  const column = columnOf(field);
  const texts = database.prepare<{ bytes: Uint8Array | null; wanted: bigint | null }, Condition['values']>(
    `select case typeof(${column}) when 'text' then cast(${column} as blob) end as bytes, ${wanted} as wanted ${from}`,
  );
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let [seen, row] = [0, 0];
  for (const text of texts.iterate(...values)) {
    seen += 1;
    if (seen % BREATH_ROWS === 0) await breathe();
    if (text.wanted !== 1n) continue;
    row += 1;
    const { bytes } = text;
    if (bytes === null) continue;
    try {
      decoder.decode(bytes);
    } catch {
      const shown = shortened(Buffer.from(bytes).toString('utf8'));
      throw new DataError(
        'invalid_encoding',
        `${stream}: row ${row}: ${field.path[0]} has ${shown}, which is not UTF-8`,
      );
    }
  }
}
