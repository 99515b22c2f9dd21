import type { OutputFormat } from '../format.ts';
import { binarySegments, isBinaryColumn } from './binary-segments.ts';
import { limitedNumber, openParquet } from './output.ts';
import { PARQUET_DIALECT, parquetColumns, parquetCopy, parquetRows } from './reader.ts';
import { textSegments } from './text-segments.ts';

export const parquetFormat: OutputFormat = {
  name: 'parquet',
  extension: /\.parquet$/i,
  columns: parquetColumns,
  rows: parquetRows,
  copy: {
    dialect: PARQUET_DIALECT,
    formats: ['pgcopy-binary', 'pgcopy-text'],
    read: async (ctx, file, request) => parquetCopy(ctx, file, request),
  },
  texts: { nul: true },
  holds: limitedNumber,
  outputExtension: () => 'parquet',
  create: openParquet,
  bytes: {
    formats(columns) {
      // A line of a single column can be empty, and DuckDB's reader skips empty lines.
      const text = columns.length > 1 ? (['pgcopy-text'] as const) : [];
      return columns.every(isBinaryColumn) ? ['pgcopy-binary', ...text] : [...text];
    },
    segments: (format, chunks, options) =>
      format === 'pgcopy-binary' ? binarySegments(chunks, options.columns) : textSegments(chunks, options),
  },
};
