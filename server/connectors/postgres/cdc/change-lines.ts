import type { ChangeLines, ReadRequest } from '../../contract/connector.ts';
import { type ChangeFacts, factName } from '../../contract/change-fields.ts';
import { LineBuffer } from '../../kits/log/change-lines.ts';
import { CommitBytes } from './commit-bytes.ts';
import type { Begin, LoggedChange, LoggedRelation } from './pgoutput.ts';

const NEW = 0x4e;
const [TEXT, NULL] = [0x74, 0x6e];
const LETTER_t = 0x74;

/** Collects changes of one table as lines of COPY text, straight from the bytes of the log. */
export class LineCollector {
  readonly #lines = new LineBuffer();
  /** Where the relation has the columns of the request, -1 for a fact; null: it lacks some of them. */
  #places: readonly number[] | null = null;
  /** What the columns have of a change, by index; null: a value of the row. */
  readonly #facts: readonly (keyof ChangeFacts | null)[];
  readonly #hasFacts: boolean;
  readonly #isBoolean: readonly boolean[];
  #begun: Begin | null = null;
  readonly #commit = new CommitBytes();
  /** The number of columns of the relation. */
  #width = 0;
  #hasKey = false;
  /** Of the values of the current tuple; a length below 0: null. */
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];

  constructor(private readonly request: Pick<ReadRequest, 'columns' | 'primary_key'>) {
    this.#facts = request.columns.map(({ field }) => factName(field));
    this.#hasFacts = this.#facts.some((fact) => fact !== null && fact !== '_cdc_operation');
    this.#isBoolean = request.columns.map(({ field }) => field.type === 'boolean');
  }

  useRelation({ columns, keyColumns }: Pick<LoggedRelation, 'columns' | 'keyColumns'>): void {
    const named = new Map(columns.map(({ name }, place) => [name, place]));
    const places = this.request.columns.map(({ field }) => named.get(field.path[0]!) ?? -1);
    const isMissing = places.some((place, index) => place < 0 && this.#facts[index] === null);
    this.#places = isMissing ? null : places;
    this.#width = columns.length;
    this.#hasKey = this.request.primary_key.every(([name]) => keyColumns.includes(name!));
  }

  /**
   * @returns false: nothing was added. The change is more than one row, or lacks values: a key that has changed, a long value
   * that has not, the whole old row of an update
   */
  add({ kind, buffer: bytes, at, to }: LoggedChange, begun: Begin): boolean {
    const places = this.#places;
    if (places === null || (kind !== 'insert' && !this.#hasKey)) return false;
    if (kind === 'update' && bytes[at] !== NEW) return false;
    if (!this.#locate(bytes, at + 1, to)) return false;
    if (begun !== this.#begun && this.#hasFacts) this.#commit.set(begun);
    this.#begun = begun;
    const lines = this.#lines;
    for (let index = 0; index < places.length; index++) {
      const place = places[index]!;
      const fact = this.#facts[index]!;
      if (fact === '_cdc_operation') lines.ascii(kind);
      else if (fact !== null) lines.plain(this.#commit.of(fact));
      else if (this.#lengths[place]! < 0) lines.null();
      else if (!this.#value(bytes, place, this.#isBoolean[index]!)) {
        lines.undo();
        return false;
      }
    }
    lines.endLine(kind === 'delete');
    return true;
  }

  /** Returns what has been collected, if anything, and empties the buffers. */
  take(): ChangeLines | null {
    return this.#lines.take();
  }

  /** @returns false: PostgreSQL cannot store it */
  #value(bytes: Buffer, place: number, isBoolean: boolean): boolean {
    const from = this.#starts[place]!;
    if (!isBoolean) return this.#lines.text(bytes, from, from + this.#lengths[place]!);
    this.#lines.ascii(bytes[from] === LETTER_t ? 'true' : 'false');
    return true;
  }

  /** @returns false: a value is missing from the log */
  #locate(bytes: Buffer, from: number, to: number): boolean {
    const count = (bytes[from]! << 8) | bytes[from + 1]!;
    if (count !== this.#width) return false;
    let at = from + 2;
    for (let place = 0; place < count; place++) {
      const kind = bytes[at]!;
      at += 1;
      if (kind === TEXT) {
        const length = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
        this.#starts[place] = at + 4;
        this.#lengths[place] = length;
        at += 4 + length;
      } else if (kind === NULL) {
        this.#starts[place] = at;
        this.#lengths[place] = -1;
      } else return false;
    }
    if (at > to) throw new Error('a message of the log ends too early');
    return true;
  }
}
