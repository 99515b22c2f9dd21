import type { Batch, Cell } from '../../contract/connector.ts';
import { type RecordPage, withoutEmpty } from './records.ts';

const BATCH_ROWS = 5000;
/** Values of this size stay in the processor's cache: 1 MB takes some 10 % more processor time. */
const BATCH_BYTES = 256 * 1024;
/** Rows of a slow service are passed on after this time. */
const BATCH_MS = 1000;

/** Combines small pages, and splits large ones, into batches of a useful size. Empty records are left out. */
export async function* inBatches<Page extends RecordPage>(
  pages: AsyncIterable<Page>,
  toRows: (page: Page) => Cell[][],
): AsyncGenerator<Batch> {
  let rows: Cell[][] = [];
  let bytes = 0;
  let started = performance.now();
  for await (const page of pages) {
    const found = toRows(withoutEmpty(page));
    const share = page.bytes / Math.max(found.length, 1);
    for (let from = 0; from < found.length; ) {
      const room = Math.min(BATCH_ROWS - rows.length, Math.ceil((BATCH_BYTES - bytes) / Math.max(share, 1)));
      const taken = found.slice(from, from + Math.max(room, 1));
      for (const row of taken) rows.push(row);
      bytes += Math.ceil(taken.length * share);
      from += taken.length;
      if (rows.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
      yield { rows, bytes };
      [rows, bytes, started] = [[], 0, performance.now()];
    }
    if (rows.length === 0 || performance.now() - started < BATCH_MS) continue;
    yield { rows, bytes };
    [rows, bytes, started] = [[], 0, performance.now()];
  }
  if (rows.length > 0) yield { rows, bytes };
}
