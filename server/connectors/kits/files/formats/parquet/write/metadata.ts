import { binary, encode, i32, i64, list, struct, text, type Value } from './compact-protocol.ts';
import type { Bounds } from './bounds.ts';
import type { ParquetType } from './types.ts';

/*
 * Structures of Parquet's `parquet.thrift` (https://github.com/apache/parquet-format) with the numbers of its fields.
 */

const [OPTIONAL, DATA_PAGE, ZSTD] = [1, 0, 6] as const;
/** Encodings of values and of definition levels. */
const [PLAIN, RLE] = [0, 3] as const;

export interface SchemaColumn {
  name: string;
  type: ParquetType;
}

/** One column in one row group: a single page. */
export interface WrittenColumn {
  /** Where its page begins in the file, and its size with the header. */
  at: number;
  bytes: number;
  uncompressed: number;
  nulls: number;
  bounds: Bounds | null;
}

export interface WrittenGroup {
  rows: number;
  columns: WrittenColumn[];
}

export function pageHeader(rows: number, uncompressed: number, compressed: number): Buffer {
  const page = struct({ 1: i32(rows), 2: i32(PLAIN), 3: i32(RLE), 4: i32(RLE) });
  return encode(struct({ 1: i32(DATA_PAGE), 2: i32(uncompressed), 3: i32(compressed), 5: page }));
}

/** FileMetaData. */
export function footer(columns: readonly SchemaColumn[], groups: readonly WrittenGroup[]): Buffer {
  const root = struct({ 4: text('schema'), 5: i32(columns.length) });
  const inOrderOfType = struct({ 1: struct({}) });
  return encode(
    struct({
      1: i32(1),
      2: list([root, ...columns.map(schemaElement)]),
      3: i64(groups.reduce((sum, { rows }) => sum + rows, 0)),
      4: list(groups.map((group) => rowGroup(columns, group))),
      6: text('data-pipelines'),
      7: list(columns.map(() => inOrderOfType)),
    }),
  );
}

function schemaElement({ name, type }: SchemaColumn): Value {
  const optional = (value?: number) => (value === undefined ? undefined : i32(value));
  return struct({
    1: i32(type.physical),
    2: optional(type.length),
    3: i32(OPTIONAL),
    4: text(name),
    6: optional(type.converted),
    7: optional(type.scale),
    8: optional(type.precision),
    10: type.logical,
  });
}

function rowGroup(schema: readonly SchemaColumn[], { rows, columns }: WrittenGroup): Value {
  const sum = (of: (column: WrittenColumn) => number) => columns.reduce((total, column) => total + of(column), 0);
  return struct({
    1: list(columns.map((column, index) => columnChunk(schema[index]!, column, rows))),
    2: i64(sum(({ uncompressed }) => uncompressed)),
    3: i64(rows),
    5: i64(columns[0]!.at),
    6: i64(sum(({ bytes }) => bytes)),
  });
}

function columnChunk(
  { name, type }: SchemaColumn,
  { at, bytes, uncompressed, nulls, bounds }: WrittenColumn,
  rows: number,
): Value {
  const found = bounds ? { 5: binary(bounds.max), 6: binary(bounds.min) } : {};
  const metadata = struct({
    1: i32(type.physical),
    2: list([i32(PLAIN), i32(RLE)]),
    3: list([text(name)]),
    4: i32(ZSTD),
    5: i64(rows),
    6: i64(uncompressed),
    7: i64(bytes),
    9: i64(at),
    12: struct({ 3: i64(nulls), ...found }),
  });
  return struct({ 2: i64(at), 3: metadata });
}
