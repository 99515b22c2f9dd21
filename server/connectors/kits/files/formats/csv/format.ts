import type { FileFormat } from '../format.ts';
import { openTextFile, textExtension } from '../text-output.ts';
import { csvCopy } from './copy.ts';
import { csvEncoder } from './encoder.ts';
import { csvColumns, csvRows } from './reader.ts';

export const csvFormat: FileFormat = {
  name: 'csv',
  extension: /\.(csv|tsv)(\.gz)?$/i,
  columns: csvColumns,
  rows: csvRows,
  copy: csvCopy,
  texts: { nul: true, unread_json: true },
  outputExtension: textExtension('csv'),
  create: (draft, columns, config) => openTextFile(draft, csvEncoder(columns, config), config),
};
