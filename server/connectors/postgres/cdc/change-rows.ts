import type { Pgoutput } from 'pg-logical-replication';
import type { Cell, ReadRequest, RowChange } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../contract/changes.ts';
import { type ChangeFacts, factName } from '../read/change-fields.ts';
import { cellOf, type Gap } from './fill-toast-values.ts';
import { AGAIN } from './table-shape.ts';

/** Values of a row by column, as texts; undefined: the log does not have it. */
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
  /** Of what the log tells at the moment: indexes of the columns that it does not have at all. */
  #absent: readonly number[] = [];
  #untold: readonly string[] = [];

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

  /** What follows is told of in these words: the table as it was when it was changed, which may be another by now. */
  tellBy({ columns, keyColumns }: Pick<Pgoutput.MessageRelation, 'columns' | 'keyColumns'>): void {
    const names = new Set(columns.map(({ name }) => name));
    this.#absent = this.#columns.flatMap(({ name, fact }, index) => (fact === null && !names.has(name) ? [index] : []));
    this.#untold = this.#key.filter((name) => !keyColumns.includes(name));
  }

  begin({ commitLsn, commitTime }: Pgoutput.MessageBegin): void {
    this.#committed = { _cdc_committed_at: instantText(commitTime as bigint), _cdc_lsn: commitLsn };
  }

  insert(message: Pgoutput.MessageInsert): void {
    this.#push(message.new, 'insert', UPSERT);
    this.#ask(message.new, this.#absent);
  }

  /** A changed key is the end of one row and the beginning of another. */
  update(message: Pgoutput.MessageUpdate): void {
    this.#assertTold();
    const old: Values | null = message.key ?? message.old;
    const values: Values = message.new;
    const moved = old !== null && this.#key.some((name) => old[name] !== undefined && old[name] !== values[name]);
    if (moved) this.#push(old, 'delete', DELETE);
    const lacking = this.#columns.flatMap(({ name, fact }, index) =>
      fact === null && values[name] === undefined ? [index] : [],
    );
    // What the destination has under the same key stays as it is there.
    const unchanged = moved ? [] : lacking.filter((index) => !this.#absent.includes(index));
    this.#push(values, 'update', unchanged.length === 0 ? UPSERT : { operation: 'upsert', unchanged });
    this.#ask(values, moved ? lacking : this.#absent);
  }

  delete({ key, old }: Pgoutput.MessageDelete): void {
    this.#assertTold();
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

  /** The row that was pushed last lacks values. Without a key nobody could say which row that is. */
  #ask(values: Values, columns: readonly number[]): void {
    if (columns.length === 0 || this.#key.length === 0) return;
    const untold = this.#key.filter((name) => values[name] === undefined);
    if (untold.length > 0) this.#fail(untold);
    const key = this.#key.flatMap((name) => values[name] ?? []);
    if (key.length === this.#key.length) this.gaps.push({ row: this.rows.at(-1)!, columns: [...columns], key });
  }

  #assertTold(): void {
    if (this.#untold.length > 0) this.#fail(this.#untold);
  }

  #fail(untold: readonly string[]): never {
    throw new ConfigurationError(
      'replica_identity_insufficient',
      `${this.request.stream.name} had a different key or replica identity for a while: the log lacks ${untold.join(', ')} of rows that were changed then. ${AGAIN}`,
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

/** Microseconds since 1970, as PostgreSQL writes them in UTC. */
function instantText(micros: bigint): string {
  const text = new Date(Number(micros / 1000n)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23)}${String(micros % 1000n).padStart(3, '0')}+00`;
}
