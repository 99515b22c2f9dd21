import type { Batch, Cell } from '../../contract/connector.ts';

const BATCH_ROWS = 5000;
const BATCH_BYTES = 1024 * 1024;
/** Rows of a slow service are not kept longer than that. */
const BATCH_MS = 1000;

/** Pages as batches of a size that is worth moving. */
export async function* inBatches<Page extends { bytes: number }>(
  pages: AsyncIterable<Page>,
  toRows: (page: Page) => Cell[][],
): AsyncGenerator<Batch> {
  let rows: Cell[][] = [];
  let bytes = 0;
  let begun = performance.now();
  for await (const page of pages) {
    const found = toRows(page);
    const share = page.bytes / Math.max(found.length, 1);
    for (let from = 0; from < found.length; ) {
      const room = Math.min(BATCH_ROWS - rows.length, Math.ceil((BATCH_BYTES - bytes) / Math.max(share, 1)));
      const part = found.slice(from, from + Math.max(room, 1));
      for (const row of part) rows.push(row);
      bytes += Math.ceil(part.length * share);
      from += part.length;
      if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
      yield { rows, bytes };
      [rows, bytes, begun] = [[], 0, performance.now()];
    }
    if (rows.length === 0 || performance.now() - begun < BATCH_MS) continue;
    yield { rows, bytes };
    [rows, bytes, begun] = [[], 0, performance.now()];
  }
  if (rows.length > 0) yield { rows, bytes };
}
