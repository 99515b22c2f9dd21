import type { FileFormat } from '../format.ts';
import { avroColumns, avroRows } from './reader.ts';

export const avroFormat: FileFormat = { name: 'avro', extension: /\.avro$/i, columns: avroColumns, rows: avroRows };
