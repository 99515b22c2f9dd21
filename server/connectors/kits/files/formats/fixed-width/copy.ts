import { isAscii, isUtf8 } from 'node:buffer';
import { DataError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import { fixedColumnsOf } from '../../settings/fixed-width.ts';
import type { FoundFile } from '../../stores/store.ts';
import { startsWithMark, withRoom } from '../csv/copy.ts';
import { MisfitError, type Transcoded } from '../csv/transcoder.ts';
import type { ChunkPool } from '../chunk-pool.ts';
import { byteChunks, checkRecordLength, wrongEncoding } from '../file-chunks.ts';
import { type CopyPiece, type CopyReader, type FileColumn, warnOfNewColumns } from '../format.ts';
import { misfit } from '../text-rows.ts';
import { layoutOf } from './line-cells.ts';
import { FIXED_WIDTH_DIALECT, MALFORMED } from './reader.ts';
import { BrokenLineError, type LinePlan, LineTranscoder } from './transcoder.ts';

const NEWLINE = 10;

export const fixedWidthCopy: CopyReader = {
  dialect: FIXED_WIDTH_DIALECT,
  formats: ['pgcopy-text'],
  async read(ctx, file, { columns, known, pool }) {
    const plan = copyPlan(ctx, columns);
    if (!plan) return null;
    const names = plan.layout.columns.map(({ name }) => name);
    warnOfNewColumns(ctx, file, names, known);
    return transcodeFile(ctx, file, { plan, pool });
  },
};

/** Null if the file has to be read by cells: a column is missing, or the encoding or the NULL text differs. */
function copyPlan({ config }: SourceContext, wanted: FileColumn[]): LinePlan | null {
  if (config.encoding !== 'utf-8' || config.null_value !== '') return null;
  const all = fixedColumnsOf(config.fixed_width_columns);
  const places = new Map(all.map((column) => [column.name, column]));
  const columns = wanted.flatMap(({ name, type }) => {
    const place = places.get(name);
    return place ? [{ ...place, type }] : [];
  });
  if (columns.length < wanted.length) return null;
  return { layout: layoutOf(all, config), columns, skip: config.skip_lines };
}

async function* transcodeFile(
  ctx: SourceContext,
  file: FoundFile,
  { plan, pool }: { plan: LinePlan; pool: ChunkPool },
): AsyncGenerator<CopyPiece> {
  let buffer = new Uint8Array(1 << 21);
  let [held, line] = [0, 1];
  let isStart = true;
  const transcoder = new LineTranscoder(plan);
  const start = () => (isStart && startsWithMark(buffer) ? 3 : 0);
  /** Takes whole lines that end at `end`. */
  const take = async (end: number): Promise<CopyPiece> => {
    const input = buffer.subarray(start(), end);
    const ascii = isAscii(input);
    if (!ascii && !isUtf8(input)) await wrongEncoding(file, 'utf-8', ctx.signal);
    const { output, rows, lines, nuls } = transcodeAt(file, line, () => transcoder.run(input, ascii));
    isStart = false;
    line += lines;
    buffer.copyWithin(0, end, held);
    held -= end;
    return { bytes: pool.copyOf(output), rows, removed_nul: nuls > 0 };
  };
  for await (const chunk of byteChunks(file, ctx.signal)) {
    buffer = withRoom(buffer, held, chunk.length);
    buffer.set(chunk, held);
    held += chunk.length;
    if (!chunk.includes(NEWLINE)) {
      checkRecordLength(file, held, line);
      continue;
    }
    const piece = await take(buffer.lastIndexOf(NEWLINE, held - 1) + 1);
    if (piece.bytes.length) yield piece;
  }
  if (held <= start()) return;
  buffer[held] = NEWLINE;
  held += 1;
  const piece = await take(held);
  if (piece.bytes.length) yield piece;
}

function transcodeAt(file: FoundFile, line: number, run: () => Transcoded): Transcoded {
  try {
    return run();
  } catch (error) {
    if (error instanceof MisfitError) throw misfit(file, error.column, line + error.lines);
    if (!(error instanceof BrokenLineError)) throw error;
    throw new DataError(MALFORMED, `${file.name}, line ${line + error.lines}: ${error.message}`);
  }
}
