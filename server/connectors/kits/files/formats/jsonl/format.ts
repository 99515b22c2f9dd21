import type { FileFormat } from '../format.ts';
import { openTextFile, textExtension } from '../text-output.ts';
import { jsonlEncoder } from './encoder.ts';
import { jsonlColumns, jsonlRows } from './reader.ts';

export const jsonlFormat: FileFormat = {
  name: 'jsonl',
  extension: /\.(jsonl|ndjson)(\.gz)?$/i,
  columns: jsonlColumns,
  rows: jsonlRows,
  texts: { nul: true, surrogates: true, unread_json: true },
  outputExtension: textExtension('jsonl'),
  create: (draft, columns, config) => openTextFile(draft, jsonlEncoder(columns), config),
};
