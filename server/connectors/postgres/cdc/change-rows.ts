import type { Pgoutput } from 'pg-logical-replication';
import type { Cell, ReadRequest, RowChange } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../contract/changes.ts';
import { type ChangeFacts, factName } from '../../contract/change-fields.ts';
import { cellOf, type Gap } from './fill-toast-values.ts';
import { RESET_CURSOR_HINT } from './table-shape.ts';

/** Values of a row by column, as text; undefined: missing from the log. */
type Values = Record<string, string | null | undefined>;

interface Column {
  name: string;
  fact: keyof ChangeFacts | null;
  boolean: boolean;
  key: boolean;
}

/** Collects the changes of one table as rows of the request's columns. */
export class ChangeRows {
  rows: Cell[][] = [];
  changes: RowChange[] = [];
  gaps: Gap[] = [];
  bytes = 0;
  readonly #columns: Column[];
  readonly #key: string[];
  #committed: Pick<ChangeFacts, '_cdc_committed_at' | '_cdc_lsn'> = { _cdc_committed_at: null, _cdc_lsn: null };
  /** Indexes of the columns that the current relation message lacks. */
  #missingColumns: readonly number[] = [];
  #missingKey: readonly string[] = [];

  constructor(private readonly request: ReadRequest) {
    const { columns, primary_key } = request;
    this.#key = primary_key.map((path) => path[0]!);
    this.#columns = columns.map(({ field }) => ({
      name: field.path[0]!,
      fact: factName(field),
      boolean: field.type === 'boolean',
      key: this.#key.includes(field.path[0]!),
    }));
  }

  /** Decodes the changes that follow by this relation. It describes the table at the time of the change, not today. */
  useRelation({ columns, keyColumns }: Pick<Pgoutput.MessageRelation, 'columns' | 'keyColumns'>): void {
    const names = new Set(columns.map(({ name }) => name));
    this.#missingColumns = this.#columns.flatMap(({ name, fact }, index) =>
      fact === null && !names.has(name) ? [index] : [],
    );
    this.#missingKey = this.#key.filter((name) => !keyColumns.includes(name));
  }

  begin({ commitLsn, commitTime }: Pgoutput.MessageBegin): void {
    this.#committed = { _cdc_committed_at: instantText(commitTime as bigint), _cdc_lsn: commitLsn };
  }

  insert(message: Pgoutput.MessageInsert): void {
    this.#push(message.new, 'insert', UPSERT);
    this.#recordGap(message.new, this.#missingColumns);
  }

  /** A changed key deletes the old row and inserts a new one. */
  update(message: Pgoutput.MessageUpdate): void {
    this.#assertKeyLogged();
    const old: Values | null = message.key ?? message.old;
    const values: Values = message.new;
    const moved = old !== null && this.#key.some((name) => old[name] !== undefined && old[name] !== values[name]);
    if (moved) this.#push(old, 'delete', DELETE);
    const lacking = this.#columns.flatMap(({ name, fact }, index) =>
      fact === null && values[name] === undefined ? [index] : [],
    );
    // With the same key, the destination keeps its own values.
    const unchanged = moved ? [] : lacking.filter((index) => !this.#missingColumns.includes(index));
    this.#push(values, 'update', unchanged.length === 0 ? UPSERT : { operation: 'upsert', unchanged });
    this.#recordGap(values, moved ? lacking : this.#missingColumns);
  }

  delete({ key, old }: Pgoutput.MessageDelete): void {
    this.#assertKeyLogged();
    this.#push(key ?? old ?? {}, 'delete', DELETE);
  }

  truncate(): void {
    this.#push({}, 'truncate', TRUNCATE);
  }

  /** Returns what has been collected and empties the buffers. */
  take(): { rows: Cell[][]; changes: RowChange[]; bytes: number } {
    const { rows, changes, bytes } = this;
    [this.rows, this.changes, this.gaps, this.bytes] = [[], [], [], 0];
    return { rows, changes, bytes };
  }

  /** Records the values that the last row lacks. Without a key they cannot be looked up. */
  #recordGap(values: Values, columns: readonly number[]): void {
    if (columns.length === 0 || this.#key.length === 0) return;
    const missing = this.#key.filter((name) => values[name] === undefined);
    if (missing.length > 0) this.#fail(missing);
    const key = this.#key.flatMap((name) => values[name] ?? []);
    if (key.length === this.#key.length) this.gaps.push({ row: this.rows.at(-1)!, columns: [...columns], key });
  }

  #assertKeyLogged(): void {
    if (this.#missingKey.length > 0) this.#fail(this.#missingKey);
  }

  #fail(missing: readonly string[]): never {
    throw new ConfigurationError(
      'replica_identity_insufficient',
      `${this.request.stream.name} had a different key or replica identity for some time. The log lacks ${missing.join(', ')} of the rows changed in that time. ${RESET_CURSOR_HINT}`,
    );
  }

  #push(values: Values, operation: string, change: RowChange): void {
    const facts: ChangeFacts = { _cdc_operation: operation, ...this.#committed };
    const cells: Cell[] = [];
    for (const { name, fact, boolean } of this.#columns) cells.push(fact ? facts[fact] : cellOf(values[name], boolean));
    this.rows.push(cells);
    this.changes.push(change);
  }
}

/** Formats microseconds since 1970 the way PostgreSQL prints a UTC timestamp. */
function instantText(micros: bigint): string {
  const text = new Date(Number(micros / 1000n)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23)}${String(micros % 1000n).padStart(3, '0')}+00`;
}
