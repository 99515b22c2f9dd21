import type { ValueType } from '../../../cells/casts.ts';
import type { TextRules } from '../../../cells/text-rules.ts';
import type { ByteFormat, Cell, Field, TargetColumn } from '../../../contract/connector.ts';
import type { FileDestinationConfig, FormatName, SourceContext } from '../settings/files.ts';
import type { Draft, FoundFile } from '../stores/store.ts';
import type { ChunkPool } from './chunk-pool.ts';

/**
 * A file format: how its files are recognized and read. `kits/files/formats.ts` lists all of them. A format reads rows of
 * cells; `copy` is an optional shortcut that skips the cells.
 */
export interface FileFormat {
  name: FormatName;
  /** Matches the names of files in this format, for the setting `format: auto`. */
  extension: RegExp;
  /**
   * The columns of one file, with the narrowest types that its first rows allow (`SAMPLE_ROWS`, `SAMPLE_BYTES`).
   * @param known columns of other files of the stream. A `layout` that is returned holds for their values, too
   */
  columns(ctx: SourceContext, file: FoundFile, known: readonly FileColumn[]): Promise<FileColumn[]>;
  /**
   * Reads the cells of the requested columns, in that order and in the canonical form of their types.
   * @throws DataError with file, line and column; SchemaChangedError `column_missing` if the file lacks a column
   */
  rows(ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncIterable<FileBatch>;
  /** Reads files as PostgreSQL COPY text without making cells. */
  copy?: CopyReader;
}

/** A format that destinations write, too. `bytes` is an optional shortcut that skips the cells. */
export interface OutputFormat extends FileFormat {
  /** What its files hold of texts. */
  texts: TextRules;
  /** A type that holds less than the logical type of the column, and its name; null: it holds all values. */
  holds?(column: TargetColumn): { holds: ValueType; shown: string } | null;
  /** Extension of the files that it writes, without the leading dot: `csv.gz`. */
  outputExtension(config: FileDestinationConfig): string;
  /** Starts a file with these columns in the draft. */
  create(draft: Draft, columns: TargetColumn[], config: FileDestinationConfig): Promise<OutputFile>;
  /** Writes byte streams without making cells. */
  bytes?: ByteWriter;
}

export type FileColumn = Pick<Field, 'type' | 'source_type' | 'dialect' | 'nullable' | 'layout'> & { name: string };

export interface FileBatch {
  rows: Cell[][];
  /** Approximate size of the cells. */
  bytes: number;
}

export interface FileRequest {
  columns: FileColumn[];
  /** Names of all columns in the catalog. Any other column of a file is reported with `warnOfNewColumns`. */
  known: ReadonlySet<string>;
  /** Number of rows to leave out at the start of the file. */
  skip: number;
}

export interface CopyReader {
  /** `Field.dialect` of the columns that can be copied. */
  dialect: string;
  /** Best first. */
  formats: readonly ByteFormat[];
  /** The rows of one file in a byte format. Null if this file has to be read by `rows`. */
  read(ctx: SourceContext, file: FoundFile, request: CopyRequest): Promise<AsyncIterable<CopyPiece> | null>;
}

export interface CopyRequest extends Pick<FileRequest, 'columns' | 'known'> {
  format: ByteFormat;
  /** Memory for the bytes of pieces. */
  pool: ChunkPool;
}

/** Whole rows, without the signature of a binary COPY. */
export interface CopyPiece {
  bytes: Uint8Array;
  rows: number;
  /** NUL characters were removed from texts, because PostgreSQL cannot store them. A binary COPY still has them. */
  removed_nul: boolean;
}

/** A file that is being written. */
export interface OutputFile {
  write(rows: Cell[][]): Promise<void>;
  /** Ends the file and makes it durable. @returns its size in bytes */
  close(): Promise<number>;
  /** Leaves nothing behind; can be called after `close` failed. */
  discard(): Promise<void>;
}

export interface ByteWriter {
  /** The byte formats that can be written with these columns. */
  formats(columns: TargetColumn[]): ByteFormat[];
  /** Cuts a byte stream into one segment for each file. */
  segments(format: ByteFormat, chunks: AsyncIterable<Uint8Array>, options: SegmentOptions): AsyncGenerator<Segment>;
}

export interface SegmentOptions {
  columns: TargetColumn[];
  /** Path in an existing folder of this machine for intermediate data. */
  scratch: string;
}

/** The rows of one file. Its receiver closes it. */
export interface Segment {
  /** @returns the size of the file. @throws DataError for a value that does not fit */
  write(draft: Draft): Promise<number>;
  close(): Promise<void>;
}

/** Warns the user of the run about columns that the catalog does not have. */
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
    `${file.name} has columns that are not in the catalog: ${added.slice(0, 20).join(', ')}. Their values are not loaded. To load them, refresh the schema and reset the cursor of the stream`,
  );
}

/** How much of each file `columns` samples: so many rows, or so much text if the rows are wide. */
export const SAMPLE_ROWS = 10_000;
export const SAMPLE_BYTES = 32 << 20;
export const BATCH_ROWS = 5_000;
