import type { Cell } from '../contract/cells.ts';
import type { RowChange } from '../contract/changes.ts';
import { DataError } from '../contract/errors.ts';
import type { TargetColumn, WriteTarget } from '../contract/writer.ts';
import type { ValueType } from './casts.ts';
import { type CellCast, cellCast } from './cell-casts.ts';
import { textCheck, type TextRules } from './text-rules.ts';
import type { DeclaredType } from './value-types.ts';

/** A column of a destination: what arrives for it, and what it holds. */
export interface GateColumn {
  column: TargetColumn;
  holds: ValueType;
  /** As the destination names the type. */
  shown: string;
  /** The destination stores another value in place of NULL. */
  replacesNull?: boolean;
}

export interface GateOptions {
  table: string;
  /** `allow`: a value that would change is written as the nearest one and counted. */
  inexact: 'refuse' | 'allow';
  texts: TextRules;
}

interface Check {
  at: number;
  /** Bytes of a column with a cast cannot pass through. Their texts are checked where they are encoded. */
  isCast: boolean;
  name: string;
  shown: string;
  cast: CellCast;
  /** Values that were changed, and the first of them. */
  changed: number;
  first: string;
}

/** Writers store a moment in UTC themselves where the database has no type with a zone. */
const asWritten = (column: TargetColumn, holds: ValueType): ValueType =>
  column.type === 'timestamp_tz' && holds.type === 'timestamp' ? { ...holds, type: 'timestamp_tz' } : holds;
/** JSON stays JSON in a column of text. */
const isNested = ({ type }: TargetColumn) => type === 'json' || type === 'array';

/** A column that holds no NULL, although the destination takes one. */
type FilledColumn = Pick<Check, 'at' | 'name' | 'shown'>;

/** Declared digits of a Parquet file's numbers are those of the files that discovery saw: others may have more. */
function arriving(column: TargetColumn): DeclaredType {
  const from = column.from ?? column;
  return from.type === 'number' && from.dialect === 'duckdb' ? { ...from, source_type: null, dialect: null } : from;
}

/** Values that were changed to fit, by column. `first`: one of them, as it arrived. `shown`: the column's type. */
export type ChangedValues = Record<string, { count: number; first: string; shown: string }>;

/** What both of them count. */
export function sumOfChanged(one: ChangedValues, other: ChangedValues): ChangedValues {
  const sum = { ...one };
  for (const [name, added] of Object.entries(other)) {
    const before = sum[name];
    sum[name] = before ? { ...before, count: before.count + added.count } : added;
  }
  return sum;
}

/** One warning for each column. */
export function warnOfChanged(
  table: string,
  changed: ChangedValues,
  warn: (code: string, message: string) => void,
): void {
  for (const [name, { count, first, shown }] of Object.entries(changed)) {
    const values = `${count} ${count === 1 ? 'value' : 'values'} of ${table}.${name}`;
    warn('values_changed', `${values} did not fit ${shown} exactly and were changed. The first one: ${first}`);
  }
}

const MAX_SHOWN = 100;
/** A value in a message. */
export const shortened = (cell: string): string =>
  JSON.stringify(cell.length <= MAX_SHOWN ? cell : `${cell.slice(0, MAX_SHOWN)}…`);

/**
 * What every value passes before a destination takes it: casts to the type of its column, and what the destination can
 * store of texts. Columns whose types hold every value cost nothing.
 */
export class ValueGate {
  /** Rows seen so far, for messages. */
  #rows = 0;

  private constructor(
    private readonly checks: Check[],
    private readonly filled: FilledColumn[],
    private readonly options: GateOptions,
  ) {}

  /** Null: every value can be written as it is. */
  static of(columns: readonly GateColumn[], options: GateOptions): ValueGate | null {
    const checks = columns.flatMap(({ column, holds, shown }, at) => {
      const from = arriving(column);
      const about = { at, name: column.name, shown, changed: 0, first: '' };
      const cast = cellCast(from, asWritten(column, holds));
      const text = textCheck(from, isNested(column) ? column : holds, options.texts);
      return [
        ...(cast ? [{ ...about, cast, isCast: true }] : []),
        ...(text ? [{ ...about, cast: text, isCast: false }] : []),
      ];
    });
    const filled = columns.flatMap(({ column: { name }, shown, replacesNull }, at) =>
      replacesNull ? [{ at, name, shown }] : [],
    );
    return checks.length + filled.length > 0 ? new ValueGate(checks, filled, options) : null;
  }

  /** For a destination whose columns hold whatever their logical type does, unless `holds` names one that holds less. */
  static ofTarget(
    target: WriteTarget,
    texts: TextRules,
    holds: (column: TargetColumn) => { holds: ValueType; shown: string } | null = () => null,
  ): ValueGate | null {
    const columns = target.columns.map((column) => {
      return { column, ...(holds(column) ?? { holds: { type: column.type }, shown: column.type }) };
    });
    return ValueGate.of(columns, { table: target.table, inexact: target.inexact_values ?? 'refuse', texts });
  }

  /** Some column has to be looked at cell by cell. Bytes are searched for NULL by `nullRefusal`. */
  get needsCells(): boolean {
    return this.checks.some(({ isCast }) => isCast);
  }

  /**
   * Changes the cells in place. @param change where the row is merged: NULL may then stand for a cell that is not written
   * @returns why the row cannot be written; null if it can
   */
  take(row: Cell[], change?: RowChange): DataError | null {
    this.#rows += 1;
    for (const column of this.filled) {
      if (row[column.at] == null && isWritten(change, column.at)) return nullValue(this.options.table, column);
    }
    for (const check of this.checks) {
      const cell = row[check.at];
      if (cell == null) continue;
      const exact = check.cast.exact(cell);
      if (exact !== undefined) {
        row[check.at] = exact;
        continue;
      }
      const nearest = this.options.inexact === 'allow' ? check.cast.nearest(cell) : undefined;
      if (nearest === undefined) return this.#refusal(check, cell);
      if (check.changed === 0) check.first = cell;
      check.changed += 1;
      row[check.at] = nearest;
    }
    return null;
  }

  /** Why this column cannot take NULL; null if it can. */
  nullRefusal(at: number): DataError | null {
    const column = this.filled.find((one) => one.at === at);
    return column ? nullValue(this.options.table, column) : null;
  }

  /** @throws DataError for the first row that cannot be written */
  takeAll(rows: readonly Cell[][]): void {
    for (const row of rows) {
      const error = this.take(row);
      if (error) throw withRow(error, this.#rows);
    }
  }

  /** Number of the row that `take` saw last. */
  get row(): number {
    return this.#rows;
  }

  get changed(): ChangedValues {
    let all: ChangedValues = {};
    for (const { name, shown, changed: count, first } of this.checks) {
      if (count > 0) all = sumOfChanged(all, { [name]: { count, first: shortened(first), shown } });
    }
    return all;
  }

  /** One warning for each column whose values were changed. */
  warn(warn: (code: string, message: string) => void): void {
    warnOfChanged(this.options.table, this.changed, warn);
  }

  #refusal({ name, shown, cast }: Check, cell: string): DataError {
    const hint = this.options.inexact === 'refuse' && cast.nearest(cell) !== undefined;
    return inexactValue({ table: this.options.table, name, shown, hint }, cell);
  }
}

const isWritten = (change: RowChange | undefined, at: number) =>
  change === undefined || (change.operation === 'upsert' && !change.unchanged?.includes(at));

export const nullValue = (table: string, { name, shown }: Pick<FilledColumn, 'name' | 'shown'>): DataError =>
  new DataError('null_value', `${table}: ${name} is NULL, which ${shown} NOT NULL cannot hold`);

/** `hint`: there is a nearest value that could be written instead. */
export const inexactValue = (
  { table, name, shown, hint }: { table: string; name: string; shown: string; hint: boolean },
  cell: string,
): DataError =>
  new DataError(
    'value_does_not_fit',
    `${table}: ${name} has ${shortened(cell)}, which ${shown} cannot hold${hint ? INEXACT : ''}`,
  );

const INEXACT = ' exactly. Change the type of the column, or set inexact_values to allow';

/** The error with the number of its row, for a stream that fails: rejected rows are found by their content. */
export const withRow = (error: DataError, row: number): DataError =>
  new DataError(error.code, error.message.replace(': ', `: row ${row}: `));
