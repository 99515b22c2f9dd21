import type { FileFormat } from '../format.ts';
import { packable } from '../unpack.ts';
import { xmlColumns, xmlRows } from './reader.ts';

export const xmlFormat: FileFormat = {
  name: 'xml',
  extension: packable('xml'),
  columns: xmlColumns,
  rows: xmlRows,
};
