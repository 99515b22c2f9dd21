import type { FileFormat } from '../format.ts';
import { packable } from '../unpack.ts';
import { fixedWidthCopy } from './copy.ts';
import { fixedWidthColumns, fixedWidthRows } from './reader.ts';

export const fixedWidthFormat: FileFormat = {
  name: 'fixed_width',
  extension: packable('fwf'),
  columns: fixedWidthColumns,
  rows: fixedWidthRows,
  copy: fixedWidthCopy,
};
