import { isUtf8 } from 'node:buffer';
import type { ByteFormat, ByteStream, ReadRequest } from '../contract/connector.ts';
import { DataError } from '../contract/errors.ts';
import { encodeCopyText } from '../cells/copy-text.ts';
import { byteChunks, checkRecordLength, isWorthALook } from '../kits/files/formats/chunks.ts';
import {
  type CopyPlan,
  firstRecord,
  MisfitError,
  type Transcoded,
  Transcoder,
} from '../kits/files/formats/csv-copy.ts';
import { CsvSyntaxError } from '../kits/files/formats/csv-parser.ts';
import { CSV_DIALECT, dialectOf, headerOfFile, malformed, misfit } from '../kits/files/formats/csv-reader.ts';
import { rowsOf } from './files-together.ts';
import { placeName } from '../kits/files/stores/find-files.ts';
import { type Lines, PARQUET_DIALECT, parquetLines } from '../kits/files/formats/parquet-reader.ts';
import { type FileColumn, formatOf, type SourceContext, warnOfNewColumns } from '../kits/files/formats/reader.ts';
import type { FoundFile } from '../kits/files/stores/local-files.ts';

const NEWLINE = 10;
const RETURN = 13;

/**
 * Columns of CSV and Parquet files can go as COPY text. Bytes carry no state, so an incremental read goes row by row.
 */
export function fileByteFormats({ sync_mode, columns }: ReadRequest): ByteFormat[] {
  const alike = [CSV_DIALECT, PARQUET_DIALECT].some((one) => columns.every(({ field }) => field.dialect === one));
  return alike && columns.length > 0 && sync_mode === 'full_refresh' ? ['pgcopy-text'] : [];
}

export function copyFiles(ctx: SourceContext, files: FoundFile[], request: ReadRequest): ByteStream {
  const columns = request.columns.map(({ field }) => ({ ...field, name: field.path.join('.') }));
  const known = new Set(request.stream.fields.map(({ path }) => path.join('.')));
  const nuls = nulWarning(ctx);
  let rows = 0;
  const count = (more: number) => {
    rows += more;
  };
  async function* chunks() {
    for (const [at, file] of files.entries()) {
      if (formatOf(ctx.config, file.name) === 'parquet') {
        yield* parquetBytes(parquetLines(ctx, file, { columns, known }), { count, nuls });
        continue;
      }
      const plan = await copyPlan(ctx, file, { columns, known });
      if (plan) yield* transcodeFile(ctx, { file, plan, count, nuls });
      else {
        const later = files.slice(at + 1);
        for await (const batch of rowsOf(ctx, file, { columns, known, skip: 0, later })) {
          count(batch.rows.length);
          yield new TextEncoder().encode(encodeCopyText(batch.rows, nuls));
        }
      }
    }
  }
  return { format: 'pgcopy-text', chunks: chunks(), rows: () => rows };
}

async function* parquetBytes(
  lines: AsyncIterable<Lines>,
  { count, nuls }: Pick<Transcoding, 'count' | 'nuls'>,
): AsyncGenerator<Uint8Array> {
  for await (const { bytes, rows } of lines) {
    const hasNul = bytes.includes(0);
    if (hasNul) nuls();
    count(rows);
    yield hasNul ? bytes.filter((byte) => byte !== 0) : bytes;
  }
}

/** Null when the file must be read by cells: another order of columns, another encoding or text for NULL. */
async function copyPlan(
  ctx: SourceContext,
  file: FoundFile,
  { columns, known }: { columns: FileColumn[]; known: ReadonlySet<string> },
): Promise<CopyPlan | null> {
  const dialect = dialectOf(ctx, file);
  const [delimiter, quote] = [dialect.delimiter.charCodeAt(0), dialect.quote.charCodeAt(0)];
  if (ctx.config.encoding !== 'utf-8' || dialect.null_value !== '' || delimiter > 127 || quote > 127) return null;
  const { header, crlf } = await headerOfFile(ctx, file);
  const places = columns.map(({ name }) => header.indexOf(name));
  if (places.some((place, at) => place < 0 || place <= (places[at - 1] ?? -1))) return null;
  warnOfNewColumns(ctx, file, header, known);
  const byName = new Map(columns.map((column) => [column.name, column]));
  return { delimiter, quote, crlf, columns: header.map((name) => byName.get(name) ?? null) };
}

interface Transcoding {
  file: FoundFile;
  plan: CopyPlan;
  count(rows: number): void;
  nuls(): void;
}

async function* transcodeFile(
  ctx: SourceContext,
  { file, plan, count, nuls }: Transcoding,
): AsyncGenerator<Uint8Array> {
  let buffer = new Uint8Array(1 << 21);
  let [held, looked, line] = [0, 0, 1];
  let head = true;
  const transcoder = new Transcoder(plan);
  /** Null: no record is there to its end. */
  const take = (end: number): Uint8Array | null => {
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
    if (!isUtf8(buffer.subarray(0, from + done.read))) {
      throw new DataError('invalid_encoding', `${file.name}: the text is not utf-8`);
    }
    if (done.nuls > 0) nuls();
    count(done.rows);
    line += done.lines;
    buffer.copyWithin(0, from + done.read, end);
    held = end - from - done.read;
    return done.read > 0 ? done.output : null;
  };
  for await (const chunk of byteChunks(file, ctx.signal)) {
    buffer = withRoom(buffer, held, chunk.length);
    buffer.set(chunk, held);
    held += chunk.length;
    if (!isWorthALook({ held, looked, ends: chunk.includes(NEWLINE) })) continue;
    const output = take(held);
    looked = output ? 0 : held;
    if (output?.length) yield output;
    else checkRecordLength(file, held, line);
  }
  if (held === 0) return;
  if (buffer[held - 1] !== NEWLINE) {
    const ending = plan.crlf ? [RETURN, NEWLINE] : [NEWLINE];
    buffer.set(ending, held);
    held += ending.length;
  }
  const output = take(held);
  if (output?.length) yield output;
  if (held > 0) throw new DataError('malformed_csv', `${file.name}, line ${line}: a quote is never closed`);
}

/** The byte order mark of UTF-8. */
const startsWithMark = (bytes: Uint8Array) => bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;

/** Room for what comes, a line end and the mark of the transcoder. */
function withRoom(buffer: Uint8Array<ArrayBuffer>, held: number, more: number): Uint8Array<ArrayBuffer> {
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

/** Once a run: the same that a destination says of texts. */
function nulWarning(ctx: SourceContext): () => void {
  let warned = false;
  return () => {
    if (!warned)
      ctx.warn('nul_character_removed', `${placeName(ctx.config)}: characters NUL were left out of the texts`);
    warned = true;
  };
}
