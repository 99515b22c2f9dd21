import type { Cell, ConnectorContext, Field } from '../../../contract/connector.ts';
import type { FoundFile } from '../stores/local-files.ts';
import type { FileFormat, FileSourceConfig } from '../../../file/settings.ts';

export type SourceContext = ConnectorContext<FileSourceConfig>;
export type FileColumn = Pick<Field, 'type' | 'source_type' | 'dialect' | 'nullable'> & { name: string };

export interface FileBatch {
  rows: Cell[][];
  bytes: number;
}

/** What a format must be able to do. */
export interface FileReader {
  /** The columns of one file, with the narrowest types that its first rows allow. */
  columns(ctx: SourceContext, file: FoundFile): Promise<FileColumn[]>;
  /**
   * Cells in the order of the columns asked for and in their types' canonical form.
   * @throws DataError naming file, line and column; SchemaChangedError when a column is gone
   */
  rows(ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncIterable<FileBatch>;
}

export interface FileRequest {
  columns: FileColumn[];
  /** All columns of the catalog: others are worth a warning. */
  known: ReadonlySet<string>;
  /** Rows at the beginning that are not wanted. */
  skip: number;
}

/** Tells the run's user of columns that nobody chose yet. */
export function warnOfNewColumns(
  ctx: SourceContext,
  file: FoundFile,
  names: string[],
  known: ReadonlySet<string>,
): void {
  const added = names.filter((name) => !known.has(name));
  if (added.length === 0) return;
  ctx.warn(
    'new_columns',
    `${file.name} has columns that the catalog does not know: ${added.slice(0, 20).join(', ')}. Their values are not loaded: update the catalog, and reset the stream's cursor to have the files read again`,
  );
}

/** What discovery looks at, in each file that it opens: so many rows, or what text there is of wide ones. */
export const SAMPLE_ROWS = 10_000;
export const SAMPLE_BYTES = 32 << 20;
export const BATCH_ROWS = 5_000;

const ENDINGS: [RegExp, FileFormat][] = [
  [/\.(csv|tsv)(\.gz)?$/i, 'csv'],
  [/\.(jsonl|ndjson)(\.gz)?$/i, 'jsonl'],
  [/\.parquet$/i, 'parquet'],
];

/** Null when neither the setting nor the ending tells. */
export function formatOf(config: FileSourceConfig, name: string): FileFormat | null {
  if (config.format !== 'auto') return config.format;
  return ENDINGS.find(([ending]) => ending.test(name))?.[1] ?? null;
}
