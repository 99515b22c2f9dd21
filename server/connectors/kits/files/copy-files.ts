import type { ByteFormat, ByteStream, ReadRequest } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { encodeCopyText } from '../../cells/copy-text.ts';
import { FORMATS, formatOf } from './formats.ts';
import { ChunkPool } from './formats/chunk-pool.ts';
import { readRows } from './read-files.ts';
import type { SourceContext } from './settings/files.ts';
import { placeName } from './stores.ts';
import type { FoundFile } from './stores/store.ts';

const COPY_DIALECTS = Object.values(FORMATS).flatMap(({ copy }) => (copy ? [copy.dialect] : []));

/** COPY text, if all columns come from one format that can be copied. Bytes carry no state: full refresh only. */
export function fileByteFormats({ sync_mode, columns }: ReadRequest): ByteFormat[] {
  const alike = COPY_DIALECTS.some((dialect) => columns.every(({ field }) => field.dialect === dialect));
  return alike && columns.length > 0 && sync_mode === 'full_refresh' ? ['pgcopy-text'] : [];
}

/** All rows of the files as COPY text. A file that its format cannot copy is read by cells and encoded. */
export function copyFiles(ctx: SourceContext, files: FoundFile[], request: ReadRequest): ByteStream {
  const columns = request.columns.map(({ field }) => ({ ...field, name: field.path.join('.') }));
  const known = new Set(request.stream.fields.map(({ path }) => path.join('.')));
  const warnOfNul = nulWarning(ctx);
  const refusesNul = request.inexact_values !== 'allow';
  const pool = new ChunkPool();
  let rows = 0;
  const onNul = (file: FoundFile) => {
    if (refusesNul) throw nulRefusal(file);
    warnOfNul();
  };
  async function* chunks() {
    for (const [at, file] of files.entries()) {
      const pieces = await formatOf(ctx.config, file).copy?.read(ctx, file, { columns, known, pool });
      if (pieces) {
        for await (const piece of pieces) {
          if (piece.removed_nul) onNul(file);
          rows += piece.rows;
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
  return { format: 'pgcopy-text', chunks: chunks(), rows: () => rows, reuse, computed: true };
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
