import type { ByteFormat, ByteStream, ReadRequest } from '../../contract/connector.ts';
import { SIGNATURE } from '../../cells/copy-binary.ts';
import { DataError } from '../../contract/errors.ts';
import { encodeCopyText } from '../../cells/copy-text.ts';
import { FORMATS, formatOf } from './formats.ts';
import { ChunkPool } from './formats/chunk-pool.ts';
import { readRows } from './read-files.ts';
import type { SourceContext } from './settings/files.ts';
import { placeName } from './stores.ts';
import type { FoundFile } from './stores/store.ts';

const COPY_READERS = Object.values(FORMATS).flatMap(({ copy }) => copy ?? []);

/**
 * Those of the format that all columns come from. Bytes carry no state: full refresh only. Where NUL is removed from texts,
 * they are lines: the length of a binary field has been written before its text is read.
 */
export function fileByteFormats({ sync_mode, columns, inexact_values }: ReadRequest): ByteFormat[] {
  if (columns.length === 0 || sync_mode !== 'full_refresh') return [];
  const reader = COPY_READERS.find(({ dialect }) => columns.every(({ field }) => field.dialect === dialect));
  const formats = reader?.formats ?? [];
  return inexact_values === 'allow' ? formats.filter((format) => format === 'pgcopy-text') : [...formats];
}

/**
 * All rows of the files. A file that its format cannot copy is read by cells and encoded as text, and so are all of them
 * where one is of a format without the binary form.
 */
export function copyFiles(
  ctx: SourceContext,
  files: FoundFile[],
  { request, wanted }: { request: ReadRequest; wanted: ByteFormat },
): ByteStream {
  const offered = files.every((file) => formatOf(ctx.config, file).copy?.formats.includes(wanted));
  const format = offered ? wanted : 'pgcopy-text';
  const columns = request.columns.map(({ field }) => ({ ...field, name: field.path.join('.') }));
  const known = new Set(request.stream.fields.map(({ path }) => path.join('.')));
  const warnOfNul = nulWarning(ctx);
  const refusesNul = request.inexact_values !== 'allow';
  const pool = new ChunkPool();
  let [rows, end] = [0, 0];
  const onNul = (file: FoundFile) => {
    if (refusesNul) throw nulRefusal(file);
    warnOfNul();
  };
  async function* chunks() {
    if (format === 'pgcopy-binary') {
      end = SIGNATURE.length;
      yield SIGNATURE;
    }
    for (const [at, file] of files.entries()) {
      const pieces = await formatOf(ctx.config, file).copy?.read(ctx, file, { columns, known, format, pool });
      if (pieces) {
        for await (const piece of pieces) {
          if (piece.removed_nul) onNul(file);
          rows += piece.rows;
          end = piece.bytes.length;
          yield piece.bytes;
        }
        continue;
      }
      const later = files.slice(at + 1);
      for await (const batch of readRows(ctx, file, { columns, known, skip: 0, later })) {
        rows += batch.rows.length;
        // A copy: while a chunk waits, a view would keep the whole buffer of the encoder.
        yield pool.copyOf(encodeCopyText(batch.rows, () => onNul(file)));
      }
    }
  }
  const reuse = (chunk: Uint8Array) => pool.give(chunk);
  return { format, chunks: chunks(), rows: () => rows, rowsEnd: () => end, reuse, computed: true };
}

const nulRefusal = ({ name }: FoundFile) =>
  new DataError(
    'value_does_not_fit',
    `${name}: a text contains the character NUL, which cannot be copied. Remove it, or set inexact_values to allow`,
  );

/** Warns once per run, with the same code as destinations that cannot store NUL. */
function nulWarning(ctx: SourceContext): () => void {
  let warned = false;
  return () => {
    if (!warned) ctx.warn('nul_character_removed', `${placeName(ctx.config)}: NUL characters were removed from texts`);
    warned = true;
  };
}
