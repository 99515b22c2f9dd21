import type { Cell, ReadRequest, RowChange } from '../../contract/connector.ts';
import { CannotContinueError } from '../../contract/errors.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../contract/changes.ts';
import { type ChangeFacts, factName } from '../../contract/change-fields.ts';
import { lsnText } from '../connection/lsn.ts';
import { cellOf, type Gap } from './fill-toast-values.ts';
import type { Begin, Change, LoggedRelation, Tuple } from './pgoutput.ts';
import { RESET_CURSOR_HINT } from './table-shape.ts';

interface Column {
  name: string;
  fact: keyof ChangeFacts | null;
  boolean: boolean;
  /** Where the relation has it; -1: it does not. */
  place: number;
}

type Of<Tag extends Change['tag']> = Extract<Change, { tag: Tag }>;

/** Collects the changes of one table as rows of the request's columns. */
export class ChangeRows {
  rows: Cell[][] = [];
  changes: RowChange[] = [];
  gaps: Gap[] = [];
  bytes = 0;
  readonly #columns: Column[];
  readonly #key: string[];
  readonly #hasFacts: boolean;
  #begun: Begin | null = null;
  /** Of `#begun`. Absent: not needed yet. */
  #committed: Pick<ChangeFacts, '_cdc_committed_at' | '_cdc_lsn'> | null = null;
  /** Indexes of the columns that the current relation message lacks. */
  #missingColumns: readonly number[] = [];
  #missingKey: readonly string[] = [];
  /** Of the key's columns. */
  #keyPlaces: readonly number[] = [];

  constructor(private readonly request: ReadRequest) {
    const { columns, primary_key } = request;
    this.#key = primary_key.map((path) => path[0]!);
    this.#columns = columns.map(({ field }) => ({
      name: field.path[0]!,
      fact: factName(field),
      boolean: field.type === 'boolean',
      place: -1,
    }));
    this.#hasFacts = this.#columns.some(({ fact }) => fact !== null);
  }

  /** Decodes the changes that follow by this relation. It describes the table at the time of the change, not today. */
  useRelation({ columns, keyColumns }: Pick<LoggedRelation, 'columns' | 'keyColumns'>): void {
    const places = new Map(columns.map(({ name }, place) => [name, place]));
    for (const column of this.#columns) column.place = column.fact === null ? (places.get(column.name) ?? -1) : -1;
    this.#missingColumns = this.#columns.flatMap(({ place, fact }, index) =>
      fact === null && place < 0 ? [index] : [],
    );
    this.#missingKey = this.#key.filter((name) => !keyColumns.includes(name));
    this.#keyPlaces = this.#key.map((name) => places.get(name) ?? -1);
  }

  begin(message: Begin): void {
    [this.#begun, this.#committed] = [message, null];
  }

  insert(message: Of<'insert'>): void {
    this.#push(message.new, 'insert', UPSERT);
    if (this.#missingColumns.length > 0) this.#recordGap(message.new, this.#missingColumns);
  }

  /** A changed key deletes the old row and inserts a new one. */
  update({ old, new: values }: Of<'update'>): void {
    this.#assertKeyLogged();
    const moved =
      old !== null && this.#keyPlaces.some((place) => old[place] !== undefined && old[place] !== values[place]);
    if (moved) this.#push(old, 'delete', DELETE);
    const lacking = this.#lacking(values);
    // With the same key, the destination keeps its own values.
    const unchanged = moved ? NONE : lacking.filter((index) => !this.#missingColumns.includes(index));
    this.#push(values, 'update', unchanged.length === 0 ? UPSERT : { operation: 'upsert', unchanged });
    this.#recordGap(values, moved ? lacking : this.#missingColumns);
  }

  delete({ old }: Of<'delete'>): void {
    this.#assertKeyLogged();
    this.#push(old, 'delete', DELETE);
  }

  truncate(): void {
    this.#push([], 'truncate', TRUNCATE);
  }

  /** Returns what has been collected and empties the buffers. */
  take(): { rows: Cell[][]; changes: RowChange[]; bytes: number } {
    const { rows, changes, bytes } = this;
    [this.rows, this.changes, this.gaps, this.bytes] = [[], [], [], 0];
    return { rows, changes, bytes };
  }

  /** Indexes of the columns without a value. */
  #lacking(values: Tuple): readonly number[] {
    if (this.#missingColumns.length === 0 && !values.includes(undefined)) return NONE;
    return this.#columns.flatMap(({ fact, place }, index) =>
      fact === null && values[place] === undefined ? [index] : [],
    );
  }

  /** Records the values that the last row lacks. Without a key they cannot be looked up. */
  #recordGap(values: Tuple, columns: readonly number[]): void {
    if (columns.length === 0 || this.#key.length === 0) return;
    const missing = this.#key.filter((_, at) => values[this.#keyPlaces[at]!] === undefined);
    if (missing.length > 0) this.#fail(missing);
    const key = this.#keyPlaces.flatMap((place) => values[place] ?? []);
    if (key.length === this.#key.length) this.gaps.push({ row: this.rows.at(-1)!, columns: [...columns], key });
  }

  #assertKeyLogged(): void {
    if (this.#missingKey.length > 0) this.#fail(this.#missingKey);
  }

  #fail(missing: readonly string[]): never {
    throw new CannotContinueError(
      'replica_identity_insufficient',
      `${this.request.stream.name} had a different key or replica identity for some time. The log lacks ${missing.join(', ')} of the rows changed in that time. ${RESET_CURSOR_HINT}`,
    );
  }

  #push(values: Tuple, operation: string, change: RowChange): void {
    const facts = this.#hasFacts ? this.#facts(operation) : null;
    const columns = this.#columns;
    const cells: Cell[] = new Array(columns.length);
    for (let index = 0; index < columns.length; index++) {
      const { place, fact, boolean } = columns[index]!;
      cells[index] = fact && facts ? facts[fact] : cellOf(values[place], boolean);
    }
    this.rows.push(cells);
    this.changes.push(change);
  }

  #facts(operation: string): ChangeFacts {
    this.#committed ??= this.#begun ? committedFacts(this.#begun) : { _cdc_committed_at: null, _cdc_lsn: null };
    return { _cdc_operation: operation, ...this.#committed };
  }
}

const NONE: readonly number[] = [];

export const committedFacts = ({ commitTime, commitLsn }: Begin) => ({
  _cdc_committed_at: instantText(commitTime),
  _cdc_lsn: lsnText(commitLsn),
});

/** Formats microseconds since 1970 the way PostgreSQL prints a UTC timestamp. */
function instantText(micros: number): string {
  const text = new Date(Math.floor(micros / 1000)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23)}${String(micros % 1000).padStart(3, '0')}+00`;
}
