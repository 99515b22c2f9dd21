import { decodeCopyText } from '../../cells/copy-text.ts';
import type { Batch } from '../../contract/connector.ts';

export const BATCH_ROWS = 5_000;
/** Texts of this size stay in the processor's cache: 1 MB takes some 15 % more CPU, and far more memory. */
export const BATCH_BYTES = 256 * 1024;
export const LINE_FEED = 0x0a;

/** The text of bytes from `from` to `to`. */
type Decode = (bytes: Buffer, from: number, to: number) => string;
const utf8: Decode = (bytes, from, to) => bytes.toString('utf8', from, to);

/** Decodes whole lines of COPY text, however many, into batches. */
export function* decodeLines(lines: Buffer, decode = utf8): Generator<Batch> {
  let from = 0;
  while (from < lines.length) {
    let end = Math.min(from + BATCH_BYTES, lines.length);
    if (end < lines.length) end = lines.lastIndexOf(LINE_FEED, end - 1) + 1;
    if (end <= from) end = lines.indexOf(LINE_FEED, from) + 1;
    const rows = decodeCopyText(decode(lines, from, end));
    for (let start = 0; start < rows.length; start += BATCH_ROWS) {
      const part = rows.length > BATCH_ROWS ? rows.slice(start, start + BATCH_ROWS) : rows;
      yield { rows: part, bytes: Math.ceil(((end - from) * part.length) / rows.length) };
    }
    from = end;
  }
}
