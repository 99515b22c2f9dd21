import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { csvReader } from '../kits/files/formats/csv-reader.ts';
import { jsonlReader } from '../kits/files/formats/jsonl-reader.ts';
import { parquetReader } from '../kits/files/formats/parquet-reader.ts';
import {
  type FileBatch,
  type FileColumn,
  type FileReader,
  type FileRequest,
  formatOf,
  type SourceContext,
} from '../kits/files/formats/reader.ts';
import type { FoundFile } from '../kits/files/stores/local-files.ts';

const READERS: Record<string, FileReader> = { csv: csvReader, jsonl: jsonlReader, parquet: parquetReader };
/** Discovery opens the oldest and the newest files: between them columns rarely differ. */
const SAMPLE_FILES = 10;

export function readerOf(ctx: SourceContext, file: FoundFile): FileReader {
  const reader = READERS[formatOf(ctx.config, file.name) ?? ''];
  if (reader) return reader;
  throw new ConfigurationError('format_unknown', `The ending of "${file.name}" does not tell its format: set it`);
}

/** With the narrowest types that hold what all of the sampled files have. `broken`: of a file that cannot be read. */
export async function sampledColumns(
  ctx: SourceContext,
  files: FoundFile[],
  broken: (error: unknown) => FileColumn[] = raise,
): Promise<Map<string, FileColumn>> {
  const half = SAMPLE_FILES / 2;
  const sampled = files.length <= SAMPLE_FILES ? files : [...files.slice(0, half), ...files.slice(-half)];
  const columns = new Map<string, FileColumn>();
  for (const file of sampled) {
    for (const column of await readerOf(ctx, file).columns(ctx, file).catch(broken)) merge(columns, column);
  }
  return columns;
}

function raise(error: unknown): never {
  throw error;
}

/** Files that do not agree on a type are read as text, but for whole and other numbers. */
function merge(columns: Map<string, FileColumn>, column: FileColumn): void {
  const known = columns.get(column.name);
  if (!known || known.type === column.type) {
    columns.set(column.name, known ?? column);
    return;
  }
  const numbers = [known.type, column.type].every((type) => type === 'integer' || type === 'number');
  const dialect = known.dialect === column.dialect ? known.dialect : null;
  columns.set(column.name, { ...known, type: numbers ? 'number' : 'string', source_type: null, dialect });
}

/** A column that comes with a later file is NULL in the ones before; one that is in none of them has gone. */
export async function* rowsOf(
  ctx: SourceContext,
  file: FoundFile,
  { later, ...request }: FileRequest & { later: FoundFile[] },
): AsyncGenerator<FileBatch> {
  const reader = readerOf(ctx, file);
  let has: Set<string>;
  try {
    yield* reader.rows(ctx, file, request);
    return;
  } catch (error) {
    if (!(error instanceof SchemaChangedError && error.code === 'column_missing')) throw error;
    has = new Set((await reader.columns(ctx, file)).map(({ name }) => name));
    const absent = request.columns.filter(({ name }) => !has.has(name));
    const comes = await sampledColumns(ctx, later, () => []);
    ctx.signal.throwIfAborted();
    if (absent.some(({ name }) => !comes.has(name) || ctx.config.primary_key.includes(name))) throw error;
  }
  const present = request.columns.filter(({ name }) => has.has(name));
  const places = request.columns.map((column) => present.indexOf(column));
  for await (const batch of reader.rows(ctx, file, { ...request, columns: present })) {
    yield { ...batch, rows: batch.rows.map((row) => places.map((at) => row[at] ?? null)) };
  }
}
