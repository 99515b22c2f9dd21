import type { Cell, LogicalType } from '../../contract/connector.ts';
import { instantText, parseTime } from '../../cells/timestamp-text.ts';

/**
 * Types whose canonical text every dialect can compute. Numbers are not among them: a source without SQL shows those of
 * a binary fraction in its own way.
 */
const PORTABLE: ReadonlySet<LogicalType> = new Set([
  'string',
  'integer',
  'boolean',
  'date',
  'timestamp',
  'timestamp_tz',
  'binary',
]);
export const isPortable = (type: LogicalType): boolean => PORTABLE.has(type);

/** The text by which dialects compare a cell: instants in UTC, without zeros at the end of digits after the point. */
export function canonicalCell(type: LogicalType): (cell: Cell) => Cell {
  if (type !== 'timestamp' && type !== 'timestamp_tz') return (cell) => cell;
  return (cell) => {
    const at = cell === null ? undefined : parseTime(cell)?.at;
    return at === undefined || typeof at === 'string' ? cell : instantText(at, '').replace(/\.?0+( BC)?$/, '$1');
  };
}
