import type { OutputFormat } from '../format.ts';
import { packable } from '../unpack.ts';
import { openTextFile, textExtension } from '../text-output.ts';
import { csvCopy } from './copy.ts';
import { csvEncoder } from './encoder.ts';
import { csvColumns, csvRows } from './reader.ts';

export const csvFormat: OutputFormat = {
  name: 'csv',
  extension: packable('csv', 'tsv'),
  columns: csvColumns,
  rows: csvRows,
  copy: csvCopy,
  texts: { nul: true, unread_json: true },
  outputExtension: textExtension('csv'),
  create: (draft, columns, config) => openTextFile(draft, csvEncoder(columns, config), config),
};
