import type { OutputFormat } from '../format.ts';
import { packable } from '../unpack.ts';
import { openTextFile, textExtension } from '../text-output.ts';
import { jsonlEncoder } from './encoder.ts';
import { jsonlColumns, jsonlRows } from './reader.ts';

export const jsonlFormat: OutputFormat = {
  name: 'jsonl',
  extension: packable('jsonl', 'ndjson'),
  columns: jsonlColumns,
  rows: jsonlRows,
  texts: { nul: true, surrogates: true, unread_json: true },
  outputExtension: textExtension('jsonl'),
  create: (draft, columns, config) => openTextFile(draft, jsonlEncoder(columns), config),
};
