import type { ChangeLines, ReadRequest } from '../../contract/connector.ts';
import { type ChangeFacts, factName } from '../../contract/change-fields.ts';
import { committedFacts } from './change-rows.ts';
import type { Begin, LoggedChange, LoggedRelation } from './pgoutput.ts';

const INITIAL_BYTES = 64 * 1024;
/** More than all facts of a change have, which are ASCII without anything to escape. */
const FACTS_BYTES = 128;
const NEW = 0x4e;
const [TEXT, NULL] = [0x74, 0x6e];
const [TAB, LINE_FEED, RETURN, BACKSLASH] = [0x09, 0x0a, 0x0d, 0x5c];
const [LETTER_D, LETTER_N, LETTER_n, LETTER_r, LETTER_t] = [0x64, 0x4e, 0x6e, 0x72, 0x74];

/**
 * Collects changes of one table as lines of COPY text, straight from the bytes of the log: strings of their values would
 * be garbage as soon as they are encoded, and take most of the processor time of a catch-up.
 */
export class LineCollector {
  rows = 0;
  #deletes = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Where the relation has the columns of the request, -1 for a fact; null: it lacks some of them. */
  #places: readonly number[] | null = null;
  /** What the columns have of a change, by index; null: a value of the row. */
  readonly #facts: readonly (keyof ChangeFacts | null)[];
  #begun: Begin | null = null;
  #committed: ReturnType<typeof committedFacts> | null = null;
  /** The number of columns of the relation. */
  #width = 0;
  #hasKey = false;
  /** Of the values of the current tuple; a length below 0: null. */
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];

  constructor(private readonly request: Pick<ReadRequest, 'columns' | 'primary_key'>) {
    this.#facts = request.columns.map(({ field }) => factName(field));
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
    if (begun !== this.#begun) [this.#begun, this.#committed] = [begun, null];
    // A line feed, the change, the facts, and for each value a tab and twice its bytes, or a null.
    this.#reserve(2 * (to - at) + 3 * places.length + 3 + FACTS_BYTES);
    const into = this.#bytes;
    let end = this.#at;
    for (let index = 0; index < places.length; index++) {
      const place = places[index]!;
      const fact = this.#facts[index]!;
      if (fact !== null) end = writeAscii(this.#factOf(fact, kind), into, end);
      else if (this.#lengths[place]! < 0) end = writeNull(into, end);
      else {
        const from = this.#starts[place]!;
        end = writeEscaped(bytes, { from, to: from + this.#lengths[place]! }, into, end);
      }
      into[end++] = TAB;
    }
    if (kind === 'delete') into[end++] = LETTER_D;
    else end = writeNull(into, end);
    into[end++] = LINE_FEED;
    this.#at = end;
    this.rows += 1;
    if (kind === 'delete') this.#deletes += 1;
    return true;
  }

  /** Returns what has been collected, if anything, and empties the buffers. */
  take(): ChangeLines | null {
    if (this.rows === 0) return null;
    const lines = { bytes: this.#bytes.subarray(0, this.#at), rows: this.rows, deletes: this.#deletes };
    [this.#bytes, this.#at, this.rows, this.#deletes] = [Buffer.alloc(0), 0, 0, 0];
    return lines;
  }

  #factOf(fact: keyof ChangeFacts, kind: LoggedChange['kind']): string {
    if (fact === '_cdc_operation') return kind;
    this.#committed ??= committedFacts(this.#begun!);
    return this.#committed[fact];
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

  #reserve(more: number): void {
    const needed = this.#at + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(INITIAL_BYTES, needed, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

function writeNull(into: Buffer, at: number): number {
  into[at] = BACKSLASH;
  into[at + 1] = LETTER_N;
  return at + 2;
}

function writeAscii(text: string, into: Buffer, at: number): number {
  for (let index = 0; index < text.length; index++) into[at + index] = text.charCodeAt(index);
  return at + text.length;
}

/** @returns where the value ends */
function writeEscaped(bytes: Buffer, value: { from: number; to: number }, into: Buffer, at: number): number {
  let end = at;
  for (let from = value.from; from < value.to; from++) {
    const byte = bytes[from]!;
    const escaped = byte === BACKSLASH ? BACKSLASH : byte <= RETURN ? escapeOf(byte) : 0;
    if (escaped === 0) into[end++] = byte;
    else {
      into[end++] = BACKSLASH;
      into[end++] = escaped;
    }
  }
  return end;
}

function escapeOf(byte: number): number {
  if (byte === TAB) return LETTER_t;
  if (byte === LINE_FEED) return LETTER_n;
  return byte === RETURN ? LETTER_r : 0;
}
