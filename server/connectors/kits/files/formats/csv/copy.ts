import { isUtf8 } from 'node:buffer';
import { DataError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import type { ChunkPool } from '../chunk-pool.ts';
import { byteChunks, checkRecordLength, isWorthParsing, wrongEncoding } from '../file-chunks.ts';
import { type CopyPiece, type CopyReader, type FileColumn, warnOfNewColumns } from '../format.ts';
import { misfit } from '../text-rows.ts';
import { CsvSyntaxError } from './parser.ts';
import { CSV_DIALECT, dialectOf, headerOfFile, malformed } from './reader.ts';
import { type CopyPlan, firstRecord, MisfitError, type Transcoded, Transcoder } from './transcoder.ts';

const NEWLINE = 10;
const RETURN = 13;

export const csvCopy: CopyReader = {
  dialect: CSV_DIALECT,
  formats: ['pgcopy-text'],
  async read(ctx, file, request) {
    const plan = await copyPlan(ctx, file, request);
    return plan && transcodeFile(ctx, file, { plan, pool: request.pool });
  },
};

/** Null if the file has to be read by cells: the order of columns, the encoding or the NULL text differs. */
async function copyPlan(
  ctx: SourceContext,
  file: FoundFile,
  { columns, known }: { columns: FileColumn[]; known: ReadonlySet<string> },
): Promise<CopyPlan | null> {
  const dialect = dialectOf(ctx, file);
  const [delimiter, quote] = [dialect.delimiter.charCodeAt(0), dialect.quote.charCodeAt(0)];
  if (ctx.config.encoding !== 'utf-8' || dialect.null_value !== '' || delimiter > 127 || quote > 127) return null;
  const header = await headerOfFile(ctx, file);
  const inFile = new Map(header.map((name, at) => [name, at]));
  const places = columns.map(({ name }) => inFile.get(name) ?? -1);
  if (places.some((place, at) => place < 0 || place <= (places[at - 1] ?? -1))) return null;
  warnOfNewColumns(ctx, file, header, known);
  const byName = new Map(columns.map((column) => [column.name, column]));
  return { delimiter, quote, columns: header.map((name) => byName.get(name) ?? null) };
}

async function* transcodeFile(
  ctx: SourceContext,
  file: FoundFile,
  { plan, pool }: { plan: CopyPlan; pool: ChunkPool },
): AsyncGenerator<CopyPiece> {
  let buffer = new Uint8Array(1 << 21);
  let [held, looked, line] = [0, 0, 1];
  let head = true;
  let isWrong = false;
  const transcoder = new Transcoder(plan);
  /** Null: the buffer does not hold a whole record yet. */
  const take = (end: number): CopyPiece | null => {
    let from = 0;
    if (head) {
      from = startsWithMark(buffer) ? 3 : 0;
      const record = ctx.config.header ? firstRecord(buffer.subarray(from), end - from, plan) : { read: 0, lines: 0 };
      if (!record) return null;
      from += record.read;
      line += record.lines;
      head = false;
    }
    const done = transcodeAt(file, line, () => transcoder.run(buffer.subarray(from), end - from));
    isWrong ||= !isUtf8(buffer.subarray(0, from + done.read));
    line += done.lines;
    buffer.copyWithin(0, from + done.read, end);
    held = end - from - done.read;
    if (done.read === 0) return null;
    return { bytes: pool.copyOf(done.output), rows: done.rows, removed_nul: done.nuls > 0 };
  };
  for await (const chunk of byteChunks(file, ctx.signal)) {
    buffer = withRoom(buffer, held, chunk.length);
    buffer.set(chunk, held);
    held += chunk.length;
    if (!isWorthParsing({ held, looked, ends: chunk.includes(NEWLINE) || chunk.includes(RETURN) })) continue;
    const piece = take(held);
    if (isWrong) await wrongEncoding(file, 'utf-8', ctx.signal);
    looked = piece ? 0 : held;
    if (piece?.bytes.length) yield piece;
    else checkRecordLength(file, held, line);
  }
  if (held === 0) return;
  if (buffer[held - 1] !== NEWLINE) {
    buffer[held] = NEWLINE;
    held += 1;
  }
  const piece = take(held);
  if (isWrong) await wrongEncoding(file, 'utf-8', ctx.signal);
  if (piece?.bytes.length) yield piece;
  if (held > 0) throw new DataError('malformed_csv', `${file.name}, line ${line}: a quote is not closed`);
}

/** Whether the bytes start with UTF-8's byte order mark. */
export const startsWithMark = (bytes: Uint8Array) => bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;

/** Leaves room for the next chunk, a line end and the end mark of the transcoder. */
export function withRoom(buffer: Uint8Array<ArrayBuffer>, held: number, more: number): Uint8Array<ArrayBuffer> {
  if (held + more + 3 <= buffer.length) return buffer;
  const larger = new Uint8Array(2 * (held + more) + 3);
  larger.set(buffer.subarray(0, held));
  return larger;
}

function transcodeAt(file: FoundFile, line: number, run: () => Transcoded): Transcoded {
  try {
    return run();
  } catch (error) {
    if (error instanceof MisfitError) throw misfit(file, error.column, line + error.lines);
    if (error instanceof CsvSyntaxError) throw malformed(file, line, error);
    throw error;
  }
}
