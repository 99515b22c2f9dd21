import { SchemaChangedError } from '../../contract/errors.ts';
import { formatOf } from './formats.ts';
import type { FileBatch, FileColumn, FileRequest } from './formats/format.ts';
import { typeOfBoth } from './formats/parquet/types.ts';
import type { SourceContext } from './settings/files.ts';
import type { FoundFile } from './stores/store.ts';

/** Discovery opens the oldest and the newest files only: columns rarely differ in between. */
const SAMPLE_FILES = 10;

export const columnsOf = (ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> =>
  formatOf(ctx.config, file).columns(ctx, file, []);

/**
 * The columns of all files together, by name, with the narrowest types that hold what the sampled files contain.
 * @param known columns that earlier files have
 * @param broken called for a file that cannot be read; throws by default
 */
export async function sampleColumns(
  ctx: SourceContext,
  files: FoundFile[],
  { known = [], broken = raise }: { known?: readonly FileColumn[]; broken?: (error: unknown) => FileColumn[] } = {},
): Promise<Map<string, FileColumn>> {
  const half = SAMPLE_FILES / 2;
  const sampled = files.length <= SAMPLE_FILES ? files : [...files.slice(0, half), ...files.slice(-half)];
  const columns = new Map<string, FileColumn>();
  for (const file of sampled) {
    const found = formatOf(ctx.config, file).columns(ctx, file, [...known, ...columns.values()]);
    for (const column of await found.catch(broken)) merge(columns, column);
  }
  return columns;
}

function raise(error: unknown): never {
  throw error;
}

/** Where files disagree on a type: a mix of integers and other numbers is a number, anything else is text. */
function merge(columns: Map<string, FileColumn>, column: FileColumn): void {
  const known = columns.get(column.name);
  const isNested = column.type === 'array' || column.type === 'json';
  if (!known || (isNested && column.layout !== undefined)) {
    columns.set(column.name, column);
    return;
  }
  if (known.type === column.type) {
    columns.set(column.name, { ...known, source_type: typeOfBoth(known.source_type, column.source_type) });
    return;
  }
  const numbers = [known.type, column.type].every((type) => type === 'integer' || type === 'number');
  const dialect = known.dialect === column.dialect ? known.dialect : null;
  columns.set(column.name, { ...known, type: numbers ? 'number' : 'string', source_type: null, dialect });
}

/**
 * Reads one file. A requested column that the file lacks is NULL if a `later` file has it.
 * @throws SchemaChangedError if no file has the column, or if it belongs to the primary key
 */
export async function* readRows(
  ctx: SourceContext,
  file: FoundFile,
  { later, ...request }: FileRequest & { later: FoundFile[] },
): AsyncGenerator<FileBatch> {
  const format = formatOf(ctx.config, file);
  let has: Set<string>;
  try {
    yield* format.rows(ctx, file, request);
    return;
  } catch (error) {
    if (!(error instanceof SchemaChangedError && error.code === 'column_missing')) throw error;
    has = new Set((await format.columns(ctx, file, request.columns)).map(({ name }) => name));
    const absent = request.columns.filter(({ name }) => !has.has(name));
    const added = await sampleColumns(ctx, later, { broken: () => [] });
    ctx.signal.throwIfAborted();
    if (absent.some(({ name }) => !added.has(name) || ctx.config.primary_key.includes(name))) throw error;
  }
  const present = request.columns.filter(({ name }) => has.has(name));
  const places = request.columns.map((column) => present.indexOf(column));
  for await (const batch of format.rows(ctx, file, { ...request, columns: present })) {
    yield { ...batch, rows: batch.rows.map((row) => places.map((at) => row[at] ?? null)) };
  }
}
