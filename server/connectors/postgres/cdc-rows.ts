import type { Pgoutput } from 'pg-logical-replication';
import type { Cell, ReadRequest, RowChange } from '../define.ts';
import { DELETE, TRUNCATE, UPSERT } from '../row-changes.ts';
import { type ChangeFacts, factName } from './cdc-fields.ts';

/** Values of a row by column, as texts; undefined: the log does not have it. */
type Values = Record<string, string | null | undefined>;

interface Column {
  name: string;
  fact: keyof ChangeFacts | null;
  boolean: boolean;
  key: boolean;
}

/** A row that lacks values because they did not change, under a key that the destination does not know yet. */
export interface Gap {
  row: Cell[];
  /** Indexes of the columns. */
  columns: number[];
  key: { column: string; value: string }[];
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

  constructor({ columns, primary_key }: ReadRequest) {
    this.#key = primary_key.map((path) => path[0]!);
    this.#columns = columns.map(({ field }) => ({
      name: field.path[0]!,
      fact: factName(field),
      boolean: field.type === 'boolean',
      key: this.#key.includes(field.path[0]!),
    }));
  }

  begin({ commitLsn, commitTime }: Pgoutput.MessageBegin): void {
    this.#committed = { _cdc_committed_at: instantText(commitTime as bigint), _cdc_lsn: commitLsn };
  }

  insert(message: Pgoutput.MessageInsert): void {
    this.#push(message.new, 'insert', UPSERT);
  }

  /** A changed key is the end of one row and the beginning of another. */
  update(message: Pgoutput.MessageUpdate): void {
    const old: Values | null = message.key ?? message.old;
    const values: Values = message.new;
    const moved = old !== null && this.#key.some((name) => old[name] !== undefined && old[name] !== values[name]);
    if (moved) this.#push(old, 'delete', DELETE);
    const unchanged = this.#columns.flatMap(({ name, fact }, index) =>
      fact === null && values[name] === undefined ? [index] : [],
    );
    if (unchanged.length === 0) return this.#push(values, 'update', UPSERT);
    if (!moved) return this.#push(values, 'update', { operation: 'upsert', unchanged });
    this.#push(values, 'update', UPSERT);
    const key = this.#key.map((column) => ({ column, value: values[column] ?? '' }));
    this.gaps.push({ row: this.rows.at(-1)!, columns: unchanged, key });
  }

  delete({ key, old }: Pgoutput.MessageDelete): void {
    this.#push(key ?? old ?? {}, 'delete', DELETE);
  }

  truncate(): void {
    this.#push({}, 'truncate', TRUNCATE);
  }

  /** What has been collected; starts anew. */
  take(): { rows: Cell[][]; changes: RowChange[]; bytes: number } {
    const { rows, changes, bytes } = this;
    [this.rows, this.changes, this.gaps, this.bytes] = [[], [], [], 0];
    return { rows, changes, bytes };
  }

  #push(values: Values, operation: string, change: RowChange): void {
    const facts: ChangeFacts = { _cdc_operation: operation, ...this.#committed };
    const cells: Cell[] = [];
    for (const { name, fact, boolean } of this.#columns) cells.push(fact ? facts[fact] : cellOf(values[name], boolean));
    this.rows.push(cells);
    this.changes.push(change);
  }
}

export const cellOf = (value: string | null | undefined, boolean: boolean): Cell => {
  if (value == null) return null;
  return boolean ? (value === 't' ? 'true' : 'false') : value;
};

/** Microseconds since 1970, as PostgreSQL writes them in UTC. */
function instantText(micros: bigint): string {
  const text = new Date(Number(micros / 1000n)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23)}${String(micros % 1000n).padStart(3, '0')}+00`;
}
