import type { Cell, ConnectorContext, LogicalType, ReadRequest } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { NORMALIZERS } from '../../cells/normalizers.ts';
import { digitsOf, type FillColumn, fillAny, fillOf, jsonCell } from '../../cells/json-cells.ts';
import { instantText, parseTime, timestampText } from '../../cells/timestamp-text.ts';
import type { ApiRecord, RecordPage } from './records.ts';

interface Column {
  name: string;
  type: LogicalType;
  /** Undefined: the value does not fit. */
  toCell(value: unknown): Cell | undefined;
  fill: FillColumn;
}

export interface RowReader {
  /** Rows in the order of the requested columns. @throws DataError naming the record and field */
  rows(page: RecordPage): Cell[][];
  /** The cell of one field. */
  cell(record: ApiRecord, name: string): Cell;
  /** Fields found so far that the catalog does not have. */
  unknown: ReadonlySet<string>;
}

/** What a connector knows of a stream's columns besides the catalog. */
export interface ColumnSource {
  name: string;
  /** What the user can do about a value that does not fit, as a sentence. */
  remedy: string;
  /** `unix-time`, `unix-time-ms`, or any other, which has no effect here. */
  format(column: string): string | null;
  isDeclared(column: string): boolean;
  /** Called for a value that does not fit its column, which becomes NULL. Absent: such a value ends the read. */
  misfit?(column: string): void;
  /** Called for a time with more than six digits of a second, which are cut off. */
  cut?(column: string): void;
}

export function rowReader(stream: ColumnSource, { stream: schema, columns }: ReadRequest): RowReader {
  const all = new Map(schema.fields.map(({ path, type }) => [path[0] ?? '', columnOf(stream, path[0] ?? '', type)]));
  const wanted = columns.map(
    ({ field }) => all.get(field.path[0] ?? '') ?? columnOf(stream, field.path[0] ?? '', field.type),
  );
  const unknown = new Set<string>();
  const misfit = ({ name, type }: Column, where: string) =>
    new DataError(
      'value_does_not_fit',
      `${stream.name}, ${where}, field "${name}": the value is not of type ${type}. ${stream.remedy}`,
    );
  const replaceMisfits = (rows: (Cell | undefined)[][], at: number, page: number) => {
    for (const [record, row] of rows.entries()) {
      if (row[at] !== undefined) continue;
      const column = wanted[at] as Column;
      if (!stream.misfit) throw misfit(column, `page ${page + 1}, record ${record + 1}`);
      stream.misfit(column.name);
      row[at] = null;
    }
  };
  return {
    unknown,
    rows({ records, index }) {
      // The first record stands for its page: looking at the keys of all of them would cost a third of the time.
      for (const name in records[0]) if (!all.has(name)) unknown.add(name);
      const rows: (Cell | undefined)[][] = new Array(records.length);
      for (let at = 0; at < records.length; at += 1) rows[at] = new Array(wanted.length);
      for (let at = 0; at < wanted.length; at += 1) {
        const { name, toCell, fill } = wanted[at] as Column;
        let fits = true;
        const toKnownCell = (value: unknown) => {
          const cell = value === undefined || value === null ? null : toCell(value);
          if (cell === undefined) fits = false;
          return cell;
        };
        fill({ records, name, rows, at, toCell: toKnownCell });
        if (!fits) replaceMisfits(rows, at, index);
      }
      return rows as Cell[][];
    },
    cell(record, name) {
      const column = all.get(name) ?? columnOf(stream, name, 'string');
      const value = record[name];
      const cell = value === undefined || value === null ? null : column.toCell(value);
      if (cell === undefined) throw misfit(column, 'cursor');
      return cell;
    },
  };
}

const TIMES: ReadonlySet<LogicalType> = new Set(['date', 'timestamp', 'timestamp_tz', 'time']);
const MICROS_PER_UNIT: Record<string, number> = { 'unix-time': 1_000_000, 'unix-time-ms': 1000 };

function columnOf(stream: ColumnSource, name: string, type: LogicalType): Column {
  const unit = MICROS_PER_UNIT[stream.format(name) ?? ''];
  if (unit !== undefined) return { name, type, toCell: (value) => unixCell(value, unit), fill: fillAny };
  if (type === 'string' || !stream.isDeclared(name))
    return { name, type, toCell: (value) => jsonCell(value, type), fill: fillOf(type) };
  const cut = () => stream.cut?.(name);
  return { name, type, toCell: (value) => declaredCell(value, type, cut), fill: fillAny };
}

/** For a declared type, numbers may come as text, and empty text is NULL. */
function declaredCell(value: unknown, type: LogicalType, cut: () => void): Cell | undefined {
  if (type === 'json' || type === 'array') return jsonCell(value, type);
  // A bare number is not a time: its unit is unknown.
  if (typeof value !== 'string') return TIMES.has(type) ? undefined : jsonCell(value, type);
  if (value === '') return null;
  const normalize = NORMALIZERS[type];
  return normalize ? (normalize(value) ?? looseTime(value, type, cut)) : value;
}

const UTC = / ?(?:UTC|GMT|z)$/;
const MIDNIGHT = ' 00:00:00.000000';

/**
 * A time in a form that services use besides ISO 8601: without a zone (UTC), a date alone, more than six digits of a
 * second (cut off), `UTC` for the zone. Undefined when the value would lose its time or its zone.
 */
function looseTime(text: string, type: LogicalType, cut: () => void): Cell | undefined {
  if (type !== 'date' && type !== 'timestamp' && type !== 'timestamp_tz') return undefined;
  const parsed = parseTime(text.trim().replace(UTC, 'Z'));
  if (!parsed || typeof parsed.at === 'string') return undefined;
  if (parsed.finer) cut();
  if (type === 'timestamp_tz') return instantText(parsed.at);
  const local = instantText(parsed.at, '');
  if (parsed.hasZone && !/(?:Z|[+-]00(?::?00)?)$/.test(text.trim().replace(UTC, 'Z'))) return undefined;
  if (type === 'timestamp') return local;
  return local.endsWith(MIDNIGHT) ? local.slice(0, -MIDNIGHT.length) : undefined;
}

function unixCell(value: unknown, unit: number): Cell | undefined {
  const digits = typeof value === 'string' ? value : digitsOf(value);
  if (digits === null || !/^-?\d{1,15}(\.\d+)?$/.test(digits)) return undefined;
  return timestampText(Math.round(Number(digits) * unit));
}

export const compareText = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

/** Half-open, in the sortable form of the cursor; null: unlimited on that side. */
export interface CursorRange {
  start: string | null;
  end: string | null;
  compare(a: string, b: string): number;
}

/** The records of rows that have a cursor. */
const records = new WeakMap<readonly Cell[], ApiRecord>();

/** The whole record of a row of `rowsInRange`. */
export const recordOf = (row: readonly Cell[]): ApiRecord | undefined => records.get(row);

/**
 * The rows of a page whose cursor is in the range, with the cursor appended as the last cell. Services differ in whether limits
 * are inclusive, and some ignore them.
 */
export function rowsInRange(
  rows: Cell[][],
  page: RecordPage,
  { cursorOf, start, end, compare }: CursorRange & { cursorOf(record: ApiRecord): string | null },
): Cell[][] {
  return rows.filter((row, at) => {
    const record = page.records[at] ?? {};
    const cursor = cursorOf(record);
    row.push(cursor);
    if (cursor === null) return true;
    records.set(row, record);
    return (start === null || compare(cursor, start) >= 0) && (end === null || compare(cursor, end) < 0);
  });
}

/** Removes the appended cursor. */
export function withoutCursor(rows: Cell[][], columns: number): Cell[][] {
  for (const row of rows) {
    row.length = columns;
    records.delete(row);
  }
  return rows;
}

const MAX_NAMES = 20;

export function warnOfUnknown(
  ctx: Pick<ConnectorContext<unknown>, 'warn'>,
  stream: string,
  unknown: ReadonlySet<string>,
): void {
  if (unknown.size === 0) return;
  const names = [...unknown].slice(0, MAX_NAMES).join(', ');
  ctx.warn(
    'new_columns',
    `${stream} has fields that are not in the catalog, and their values are not loaded: ${names}. To load them, refresh the catalog or declare them in the schema. To load them for records that were read before, reset the cursor or start a custom run.`,
  );
}
