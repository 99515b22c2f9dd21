import type { Cell, ReadRequest, RowChange } from '../../contract/connector.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../contract/changes.ts';
import { CannotContinueError, ConfigurationError, DataError } from '../../contract/errors.ts';
import { type ChangeFacts, factName } from '../../contract/change-fields.ts';
import type { ByteReader } from './values/byte-reader.ts';
import { type ReadValue, type ValueOptions, valueReader, valueSkipper } from './values/column-values.ts';
import type { LogEvent } from './events.ts';
import type { Gap } from './fill-columns.ts';
import type { Gtid } from './gtid.ts';
import { RESET_HINT } from './reset-hint.ts';
import type { LoggedTable } from './table-map.ts';
import { secondsText } from './values/time-text.ts';

export type RowsEvent = Extract<LogEvent, { kind: 'rows' }>;

/** A column of the log: where its cell goes, or that it is skipped. */
interface Slot {
  /** Index in the request's columns; -1: not requested. */
  to: number;
  isKey: boolean;
  read: ReadValue;
  skip(reader: ByteReader): void;
}

const NUMBER_DIGITS = 20;

/** Collects the changes of one table as rows of the request's columns. */
export class ChangeRows {
  rows: Cell[][] = [];
  changes: RowChange[] = [];
  gaps: Gap[] = [];
  #slots: Slot[] = [];
  /** Indexes of columns that the table did not have yet. */
  #missing: readonly number[] = [];
  /** A row of nulls. */
  readonly #empty: readonly Cell[];
  #facts: Omit<ChangeFacts, '_cdc_operation'> = { _cdc_committed_at: null, _cdc_lsn: null };
  readonly #key: readonly number[];
  readonly #factAt: { at: number; name: keyof ChangeFacts }[];

  constructor(
    private readonly request: ReadRequest,
    private readonly options: ValueOptions,
  ) {
    const { columns, primary_key } = request;
    this.#key = primary_key.map(([name]) => columns.findIndex(({ field }) => field.path[0] === name));
    this.#empty = columns.map(() => null);
    this.#factAt = columns.flatMap(({ field }, at) => {
      const name = factName(field);
      return name === null ? [] : [{ at, name }];
    });
  }

  /** Decodes the changes that follow by this table. It is as it was at the time of the change, not today. */
  useTable({ columns }: LoggedTable): void {
    const places = new Map(this.request.columns.map(({ field }, at) => [factName(field) ? null : field.path[0]!, at]));
    this.#slots = columns.map((column) => {
      const to = places.get(column.name) ?? -1;
      const skip = valueSkipper(column);
      const isKey = this.#key.includes(to);
      if (to < 0) return { to, isKey: false, skip, read: () => null };
      return { to, isKey, skip, read: valueReader(column, this.request.columns[to]!.field, this.options) };
    });
    const found = new Set(this.#slots.map(({ to }) => to));
    this.#missing = this.request.columns.flatMap(({ field }, at) => (factName(field) || found.has(at) ? [] : [at]));
    const missingKey = this.#key.filter((at) => this.#missing.includes(at));
    if (missingKey.length === 0) return;
    const names = missingKey.map((at) => this.request.columns[at]!.field.path[0]).join(', ');
    throw new CannotContinueError(
      'key_not_in_log',
      `${this.request.stream.name} had no column ${names} for some time, so the changes of that time have no key. ${RESET_HINT}`,
    );
  }

  begin(gtid: Gtid, seconds: number): void {
    // Most streams do not read them, and in small transactions their text costs as much as a row.
    if (this.#factAt.length > 0) this.#facts = committedFacts(gtid, seconds);
  }

  add({ operation, rows, width, complete }: RowsEvent): void {
    if (width !== this.#slots.length || !complete) throw this.#incomplete();
    while (!rows.isAtEnd) {
      if (operation === 'insert') this.#upsert(this.#image(rows), operation);
      else if (operation === 'delete') this.#push(this.#image(rows), operation, DELETE);
      else this.#update(rows);
    }
    if (rows.at !== rows.end)
      throw new DataError('binlog_corrupt', `A change of ${this.request.stream.name} is cut off`);
  }

  truncate(): void {
    this.#push(
      this.request.columns.map(() => null),
      'truncate',
      TRUNCATE,
    );
  }

  /** Returns what has been collected and empties the buffers. */
  take(): { rows: Cell[][]; changes: RowChange[] } {
    const { rows, changes } = this;
    [this.rows, this.changes, this.gaps] = [[], [], []];
    return { rows, changes };
  }

  /** Forgets the rows from here on. */
  cut(length: number): void {
    this.rows.length = length;
    this.changes.length = length;
    const kept = new Set(this.rows);
    this.gaps = this.gaps.filter(({ row }) => kept.has(row));
  }

  /** A changed key deletes the old row and inserts a new one. Of all other old rows the key is enough. */
  #update(reader: ByteReader): void {
    const from = reader.at;
    const before = this.#image(reader, true);
    const after = this.#image(reader);
    if (this.#key.some((at) => before[at] !== after[at])) {
      const { at: end } = reader;
      reader.at = from;
      this.#push(this.#image(reader), 'delete', DELETE);
      reader.at = end;
    }
    this.#upsert(after, 'update');
  }

  #upsert(row: Cell[], operation: string): void {
    this.#push(row, operation, UPSERT);
    if (this.#missing.length > 0) this.gaps.push({ row, columns: this.#missing });
  }

  #push(row: Cell[], operation: string, change: RowChange): void {
    for (const { at, name } of this.#factAt) row[at] = name === '_cdc_operation' ? operation : this.#facts[name];
    this.rows.push(row);
    this.changes.push(change);
  }

  #image(reader: ByteReader, keyOnly = false): Cell[] {
    const slots = this.#slots;
    const { bytes, at: nulls } = reader;
    const row = this.#empty.slice();
    reader.at += (slots.length + 7) >> 3;
    for (let at = 0; at < slots.length; at++) {
      if ((bytes[nulls + (at >> 3)]! & (1 << (at & 7))) !== 0) continue;
      const slot = slots[at]!;
      if (slot.to < 0 || (keyOnly && !slot.isKey)) slot.skip(reader);
      else row[slot.to] = slot.read(reader);
    }
    return row;
  }

  #incomplete(): ConfigurationError {
    return new CannotContinueError(
      'binlog_row_image_not_full',
      `A session changed ${this.request.stream.name} without binlog_row_image = FULL, so the log lacks columns. Set it for all sessions. ${RESET_HINT}`,
    );
  }
}

export const committedFacts = ({ domain, number }: Gtid, seconds: number) => ({
  _cdc_committed_at: `${secondsText(seconds)}+00`,
  _cdc_lsn: `${domain}/${String(number).padStart(NUMBER_DIGITS, '0')}`,
});
