import { createReadStream } from 'node:fs';
import { type FileHandle, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { TargetColumn } from '../../../../contract/connector.ts';
import { decodeCopyText } from '../../../../cells/copy-text.ts';
import { literal, openDuckDb } from '../../../duckdb/instance.ts';
import { pathOf, unnamedFile } from '../../stores/local-copy.ts';
import { CHUNK_ROWS } from './chunk-tables.ts';
import { castOf, copyToParquet, openParquet } from './output.ts';
import { PLAIN_TEXT } from './types.ts';
import type { Draft } from '../../stores/store.ts';
import type { Segment, SegmentOptions } from '../format.ts';

/** Input of one Parquet file. Bounds memory and disk, however long the stream and however wide its rows. */
export const SEGMENT_BYTES = 64 << 20;
/** The longest line that DuckDB's CSV reader accepts by default. */
const MAX_LINE_LENGTH = 2_000_000;
/** Of lines that DuckDB reads at once. It holds them several times, and with the row group reaches its limit of memory. */
const MAX_READ_BYTES = 8 << 20;
const PIECE_BYTES = 1 << 20;
const NEWLINE = 10;

/** Whole lines of COPY text in an unlinked file. */
interface LineFile {
  handle: FileHandle;
  /** Whether its lines are too long for DuckDB's reader. */
  wide: boolean;
}

/** Cuts COPY text into segments of whole lines. */
export async function* textSegments(
  chunks: AsyncIterable<Uint8Array>,
  { scratch, columns }: SegmentOptions,
): AsyncGenerator<Segment> {
  for await (const { handle, wide } of lineFiles(chunks, scratch)) {
    yield {
      write: (draft) => (wide ? writeWide(handle, draft, columns) : writeRead(handle, draft, columns)),
      close: () => handle.close(),
    };
  }
}

async function* lineFiles(chunks: AsyncIterable<Uint8Array>, scratch: string): AsyncGenerator<LineFile> {
  let open: OpenFile | null = null;
  try {
    for await (const chunk of chunks) {
      open ??= await OpenFile.begin(scratch);
      const full = open.bytes + chunk.length >= SEGMENT_BYTES;
      const end = full ? chunk.lastIndexOf(NEWLINE) + 1 : 0;
      await open.write(end > 0 ? chunk.subarray(0, end) : chunk);
      if (end === 0) continue;
      yield open;
      open = null;
      if (end === chunk.length) continue;
      open = await OpenFile.begin(scratch);
      await open.write(chunk.subarray(end));
    }
    if (open) yield open;
    open = null;
  } finally {
    await open?.handle.close();
  }
}

class OpenFile implements LineFile {
  bytes = 0;
  wide = false;
  /** Of the line, and of the lines that DuckDB reads at once, so far. */
  #line = 0;
  #read = 0;
  #lines = 0;

  private constructor(readonly handle: FileHandle) {}

  static async begin(scratch: string): Promise<OpenFile> {
    return new OpenFile(await unnamedFile(dirname(scratch)));
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.handle.writeFile(bytes);
    this.bytes += bytes.length;
    for (let at = 0; at < bytes.length && !this.wide; ) {
      const end = bytes.indexOf(NEWLINE, at) + 1;
      this.#measure((end || bytes.length) - at, end > 0);
      at = end || bytes.length;
    }
  }

  #measure(bytes: number, isEnd: boolean): void {
    this.#line += bytes;
    this.#read += bytes;
    this.wide = this.#line > MAX_LINE_LENGTH || this.#read > MAX_READ_BYTES;
    if (!isEnd) return;
    this.#line = 0;
    this.#lines = (this.#lines + 1) % CHUNK_ROWS;
    if (this.#lines === 0) this.#read = 0;
  }
}

async function writeRead(handle: FileHandle, draft: Draft, columns: TargetColumn[]): Promise<number> {
  const duck = await openDuckDb(draft.scratch);
  try {
    const texts = columns.map((_, at) => `'c${at}': 'VARCHAR'`).join(', ');
    const from = `read_csv(${literal(pathOf(handle))}, auto_detect = false, header = false, delim = '\t', quote = '',
      escape = '', nullstr = '\\N', new_line = '\\n', columns = {${texts}})`;
    const values = columns.map((column, at) =>
      castOf(column, PLAIN_TEXT.has(column.type) ? `c${at}` : unescaped(`c${at}`)),
    );
    await copyToParquet(duck, { values, from, columns, draft });
  } finally {
    duck.close();
    await rm(draft.scratch, { recursive: true, force: true });
  }
  return draft.keep();
}

/** Writes cell by cell, in tables by size: the reader allocates sixteen times the longest line for its buffers, too. */
async function writeWide(handle: FileHandle, draft: Draft, columns: TargetColumn[]): Promise<number> {
  const output = await openParquet(draft, columns);
  try {
    for await (const lines of wholeLines(handle)) await output.write(decodeCopyText(lines.toString('utf8')));
  } catch (error) {
    await output.discard();
    throw error;
  }
  return output.close();
}

/** Reads the file in pieces: as text and cells it takes several times its size. */
async function* wholeLines(handle: FileHandle): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  const pieces = createReadStream('', { fd: handle.fd, start: 0, autoClose: false, highWaterMark: PIECE_BYTES });
  for await (const piece of pieces as AsyncIterable<Buffer>) {
    const end = piece.lastIndexOf(NEWLINE) + 1;
    if (end > 0) yield Buffer.concat([...held, piece.subarray(0, end)]);
    held = [...(end > 0 ? [] : held), piece.subarray(end)];
  }
}

/** SQL that reverts COPY's escapes. Between two escaped backslashes every backslash starts another escape. */
function unescaped(column: string): string {
  const steps = [
    ['\\t', 9],
    ['\\n', 10],
    ['\\r', 13],
    ['\\b', 8],
    ['\\f', 12],
    ['\\v', 11],
  ] as const;
  const part = steps.reduce((sql, [escape, code]) => `replace(${sql}, '${escape}', chr(${code}))`, 'part');
  const parts = `list_transform(string_split(${column}, '\\\\'), lambda part: ${part})`;
  return `CASE WHEN contains(${column}, '\\') THEN array_to_string(${parts}, '\\') ELSE ${column} END`;
}
