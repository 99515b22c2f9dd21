import type { Cell, ConnectorContext, LogicalType, ReadRequest } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { NORMALIZERS } from '../../cells/normalizers.ts';
import { digitsOf, jsonCell, jsonCellOf } from '../../cells/json-cells.ts';
import { timestampText } from '../../cells/timestamp-text.ts';
import type { ApiRecord, Page } from '../../http-api/pages.ts';

interface Column {
  name: string;
  type: LogicalType;
  toCell(value: unknown): Cell | undefined;
}

export interface RowReader {
  /** Rows in the order of the columns asked for. @throws DataError naming record and field */
  rows(page: Page): Cell[][];
  /** The cell of one field. */
  cell(record: ApiRecord, name: string): Cell;
  /** Fields that the catalog does not know, met so far. */
  unknown: ReadonlySet<string>;
}

/** What is known of a stream's columns beside the catalog. */
export interface ColumnSource {
  name: string;
  /** What to do about a value that does not fit. */
  remedy: string;
  /** `unix-time`, `unix-time-ms`, or any other, which says nothing here. */
  format(column: string): string | null;
  isDeclared(column: string): boolean;
  /** A value that does not fit its column becomes NULL, and is told of here. */
  misfit?(column: string): void;
}

export function rowReader(stream: ColumnSource, { stream: schema, columns }: ReadRequest): RowReader {
  const all = new Map(schema.fields.map(({ path, type }) => [path[0] ?? '', columnOf(stream, path[0] ?? '', type)]));
  const wanted = columns.map(
    ({ field }) => all.get(field.path[0] ?? '') ?? columnOf(stream, field.path[0] ?? '', field.type),
  );
  const unknown = new Set<string>();
  const misfit = ({ name, type }: Column, place: string) =>
    new DataError(
      'value_does_not_fit',
      `${stream.name}, ${place}, field "${name}": the value is no ${type}. ${stream.remedy}`,
    );
  return {
    unknown,
    rows({ records, index }) {
      // The first of a page speaks for all: to look at every key of every record would cost a third of the time.
      for (const name in records[0]) if (!all.has(name)) unknown.add(name);
      const rows: Cell[][] = new Array(records.length);
      for (let at = 0; at < records.length; at += 1) {
        const record = records[at] as ApiRecord;
        const row: Cell[] = new Array(wanted.length);
        for (let place = 0; place < wanted.length; place += 1) {
          const { name, toCell } = wanted[place] as Column;
          const value = record[name];
          const cell = value === undefined || value === null ? null : toCell(value);
          if (cell === undefined && !stream.misfit)
            throw misfit(wanted[place] as Column, `page ${index + 1}, record ${at + 1}`);
          if (cell === undefined) stream.misfit?.(name);
          row[place] = cell ?? null;
        }
        rows[at] = row;
      }
      return rows;
    },
    cell(record, name) {
      const column = all.get(name) ?? columnOf(stream, name, 'string');
      const value = record[name];
      const cell = value === undefined || value === null ? null : column.toCell(value);
      if (cell === undefined) throw misfit(column, 'the cursor');
      return cell;
    },
  };
}

const TIMES: ReadonlySet<LogicalType> = new Set(['date', 'timestamp', 'timestamp_tz', 'time']);
const UNIX: Record<string, number> = { 'unix-time': 1_000_000, 'unix-time-ms': 1000 };

function columnOf(stream: ColumnSource, name: string, type: LogicalType): Column {
  const unit = UNIX[stream.format(name) ?? ''];
  if (unit !== undefined) return { name, type, toCell: (value) => unixCell(value, unit) };
  if (type === 'string' || !stream.isDeclared(name)) return { name, type, toCell: jsonCellOf(type) };
  return { name, type, toCell: (value) => declaredCell(value, type) };
}

/** Where a type was declared, numbers may come as texts, and an empty text is no value. */
function declaredCell(value: unknown, type: LogicalType): Cell | undefined {
  if (type === 'json' || type === 'array') return jsonCell(value, type);
  // A bare number says no time: whether it counts seconds or days, nobody has said.
  if (typeof value !== 'string') return TIMES.has(type) ? undefined : jsonCell(value, type);
  if (value === '') return null;
  const normalize = NORMALIZERS[type];
  return normalize ? normalize(value) : value;
}

function unixCell(value: unknown, unit: number): Cell | undefined {
  const digits = typeof value === 'string' ? value : digitsOf(value);
  if (digits === null || !/^-?\d{1,15}(\.\d+)?$/.test(digits)) return undefined;
  return timestampText(Math.round(Number(digits) * unit));
}

const MOST_NAMES = 20;

export function warnOfUnknown(
  ctx: Pick<ConnectorContext<unknown>, 'warn'>,
  stream: string,
  unknown: ReadonlySet<string>,
): void {
  if (unknown.size === 0) return;
  const names = [...unknown].slice(0, MOST_NAMES).join(', ');
  ctx.warn(
    'new_columns',
    `${stream} has fields that the catalog does not know: ${names}. Their values are not loaded. To have them, update the catalog, or declare them in the schema, and read the records anew that were read before: reset the stream's cursor, or start a custom run`,
  );
}
