import { posix } from 'node:path';
import type { Batch } from '../contract/connector.ts';
import type { DestinationComparison, Digester } from '../contract/digest.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { ReadingDigester } from '../kits/digest/reading-digester.ts';
import type { FileColumn } from '../kits/files/formats/format.ts';
import { readRows } from '../kits/files/read-files.ts';
import { type DestinationContext, FileSourceConfig, type SourceContext } from '../kits/files/settings/files.ts';
import { findSourceFiles } from '../kits/files/stores.ts';
import { WILDCARD } from '../kits/files/stores/local-files.ts';
import type { FoundFile } from '../kits/files/stores/store.ts';
import { tablePath } from '../kits/files/stores/table-paths.ts';
import { DATA_FILE } from '../kits/files/table-writer.ts';

/**
 * The rows of a table of files, by reading them. Their cells are compared as they are written.
 * @throws ConfigurationError `destination_table_missing`, `keeps_versions`
 */
export async function digestTable(ctx: DestinationContext, comparison: DestinationComparison): Promise<Digester> {
  const { columns, key, table, rows } = comparison;
  if (rows.kind !== 'all') {
    throw new ConfigurationError(
      'keeps_versions',
      `The files of ${table} keep each version of a row. Compare a stream that overwrites its files`,
    );
  }
  const folder = `${posix.normalize(tablePath(ctx.config.path, comparison))}/`;
  const source = readerOf(ctx, folder);
  if ((await filesOf(source, folder)).length === 0) throw missing(table, 'the files');
  const read = columns.map(({ name }) => asWritten(name));
  return new ReadingDigester({
    types: columns.map(({ type }) => type),
    key,
    read: () => readTable(source, { table, folder, columns: read }),
  });
}

const missing = (table: string, what: string) =>
  new ConfigurationError(
    'destination_table_missing',
    `The destination does not have ${what} of ${table}. Run the connection first`,
  );

/** Text, so that a value that is not of its column's type is a difference like any other. */
const asWritten = (name: string): FileColumn => ({
  name,
  type: 'string',
  source_type: null,
  dialect: null,
  nullable: true,
});

/** Reads what the destination has written. */
function readerOf(ctx: DestinationContext, folder: string): SourceContext {
  // Stores have no common way to quote a wildcard: what else the pattern matches is left out by `filesOf`.
  const path = `${folder.replace(new RegExp(WILDCARD, 'g'), '?')}*`;
  return { ...ctx, config: FileSourceConfig.parse({ ...ctx.config, path, format: 'auto' }) };
}

/** Each time those that are there: an overwrite replaces them. */
async function filesOf(source: SourceContext, folder: string): Promise<FoundFile[]> {
  const found = await findSourceFiles(source).catch((error: unknown) => {
    if (error instanceof ConfigurationError && error.code === 'file_not_found') return [];
    throw error;
  });
  return found.filter(({ name }) => {
    const path = posix.normalize(name);
    return path.startsWith(folder) && DATA_FILE.test(path.slice(folder.length));
  });
}

async function* readTable(
  source: SourceContext,
  { table, folder, columns }: { table: string; folder: string; columns: FileColumn[] },
): AsyncGenerator<Pick<Batch, 'rows'>> {
  const known = new Set(columns.map(({ name }) => name));
  const files = await filesOf(source, folder);
  for (const [at, file] of files.entries()) {
    try {
      yield* readRows(source, file, { columns, known, skip: 0, later: files.slice(at + 1) });
    } catch (error) {
      const isMissing = error instanceof SchemaChangedError && error.code === 'column_missing';
      throw isMissing ? missing(table, 'a column') : error;
    }
  }
}
