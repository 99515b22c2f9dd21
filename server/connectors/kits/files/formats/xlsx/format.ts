import type { FileFormat } from '../format.ts';
import { xlsxColumns, xlsxRows } from './reader.ts';

export const xlsxFormat: FileFormat = {
  name: 'xlsx',
  extension: /\.(xlsx|xlsm)$/i,
  columns: xlsxColumns,
  rows: xlsxRows,
};
