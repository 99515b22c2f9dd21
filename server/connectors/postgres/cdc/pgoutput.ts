import type { Lsn } from '../connection/lsn.ts';

/** A column as the log describes it. */
export interface LoggedColumn {
  name: string;
  typeOid: number;
  typeMod: number;
}

/** A table as it was when the changes after this message were made. */
export interface LoggedRelation {
  /** Stays when the table is renamed; another table of its name has another one. */
  oid: number;
  schema: string;
  name: string;
  columns: LoggedColumn[];
  /** Of the replica identity. */
  keyColumns: string[];
}

/** Values by the place of their column in the relation, as text; undefined: missing from the log. */
export type Tuple = readonly (string | null | undefined)[];

export interface Begin {
  tag: 'begin';
  commitLsn: Lsn;
  /** Microseconds since 1970. */
  commitTime: number;
}

export type Change =
  | { tag: 'insert'; relation: LoggedRelation; new: Tuple }
  /** `old`: the replica identity, where it has changed or is the whole row. */
  | { tag: 'update'; relation: LoggedRelation; old: Tuple | null; new: Tuple }
  | { tag: 'delete'; relation: LoggedRelation; old: Tuple };

/** A change whose values have not been decoded: those from `at` to `to`. */
export interface LoggedChange {
  tag: 'logged';
  kind: Change['tag'];
  relation: LoggedRelation;
  buffer: Buffer;
  at: number;
  to: number;
}

export type LogEvent =
  | Begin
  | { tag: 'commit'; endLsn: Lsn }
  | Change
  | LoggedChange
  | { tag: 'truncate'; relations: LoggedRelation[] }
  | { tag: 'message'; prefix: string }
  | { tag: 'other' };

export type LogMessage = LogEvent & { bytes: number };

const POSTGRES_EPOCH_US = 946_684_800_000_000;
const IS_KEY = 1;
const [KEY, OLD] = [0x4b, 0x4f];
const [TEXT, NULL, UNCHANGED] = [0x74, 0x6e, 0x75];
const NOT_ASCII = /[\u0080-\u00ff]/;

/** Decodes messages of the plugin pgoutput: version 1 of the protocol, values as text. */
export class PgoutputDecoder {
  readonly #relations = new Map<number, LoggedRelation>();
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #to = 0;
  /**
   * The bytes of a row from `#from` on, where they are its characters: parts of a string cost a tenth of decoding each
   * value.
   */
  #ascii: string | null = null;
  #from = 0;

  /** @param lazy changes come as `LoggedChange` */
  constructor(private readonly lazy = false) {}

  /** Of the bytes from `from` to `to`, of which only a `LoggedChange` is a part. */
  decode(bytes: Buffer, from: number, to: number): LogMessage {
    [this.#bytes, this.#at, this.#to] = [bytes, from, to];
    const event = this.#event(this.#byte()) as LogMessage;
    if (this.#at > to) throw new Error('a message of the log ends too early');
    event.bytes = to - from;
    return event;
  }

  #event(kind: number): LogEvent {
    switch (kind) {
      case 0x42: // B
        return { tag: 'begin', commitLsn: this.#lsn(), commitTime: this.#int64() + POSTGRES_EPOCH_US };
      case 0x43: // C: flags and the position of the commit come first
        this.#at += 9;
        return { tag: 'commit', endLsn: this.#lsn() };
      case 0x49: // I
        return this.#change('insert');
      case 0x55: // U
        return this.#change('update');
      case 0x44: // D
        return this.#change('delete');
      case 0x54: // T
        return { tag: 'truncate', relations: this.#truncated() };
      case 0x52: // R
        this.#describe();
        return { tag: 'other' };
      case 0x59: // Y: a type
      case 0x4f: // O: an origin
        return { tag: 'other' };
      case 0x4d: // M: flags and the position come first
        this.#at += 9;
        return { tag: 'message', prefix: this.#name() };
      default:
        throw new Error(`unknown message ${kind} in the log`);
    }
  }

  #change(kind: Change['tag']): Change | LoggedChange {
    const relation = this.#relation();
    if (!this.lazy) return this.#decoded(kind, relation);
    const at = this.#at;
    this.#at = this.#to;
    return { tag: 'logged', kind, relation, buffer: this.#bytes, at, to: this.#to };
  }

  changeOf({ kind, relation, buffer, at, to }: LoggedChange): Change {
    [this.#bytes, this.#at, this.#to] = [buffer, at, to];
    const change = this.#decoded(kind, relation);
    if (this.#at > to) throw new Error('a message of the log ends too early');
    return change;
  }

  /** The number of a table is not part of the text: every other one has a byte that is no character of ASCII. */
  #decoded(kind: Change['tag'], relation: LoggedRelation): Change {
    const text = this.#bytes.toString('latin1', this.#at, this.#to);
    this.#ascii = NOT_ASCII.test(text) ? null : text;
    this.#from = this.#at;
    if (kind === 'insert') return { tag: kind, relation, new: this.#newTuple() };
    return kind === 'update' ? this.#update(relation) : { tag: kind, relation, old: this.#oldTuple(this.#byte()) };
  }

  #update(relation: LoggedRelation): Change {
    const kind = this.#bytes[this.#at]!;
    if (kind !== KEY && kind !== OLD) return { tag: 'update', relation, old: null, new: this.#newTuple() };
    this.#at += 1;
    const old = this.#oldTuple(kind);
    return { tag: 'update', relation, old, new: this.#newTuple(kind === OLD ? old : undefined) };
  }

  /** Of a key, the columns outside of it are sent as null. */
  #oldTuple(kind: number): Tuple {
    const values = this.#tuple();
    return kind === KEY ? values.map((value) => value ?? undefined) : values;
  }

  /** @param old has the values that are too large to be logged when they stay the same */
  #newTuple(old?: Tuple): Tuple {
    this.#at += 1;
    return this.#tuple(old);
  }

  #tuple(old?: Tuple): Tuple {
    const count = this.#int16();
    const values: (string | null | undefined)[] = new Array(count);
    for (let place = 0; place < count; place += 1) {
      const kind = this.#byte();
      if (kind === TEXT) values[place] = this.#value();
      else if (kind === NULL) values[place] = null;
      else if (kind === UNCHANGED) values[place] = old?.[place];
      else throw new Error(`unknown value ${kind} in the log`);
    }
    return values;
  }

  #value(): string {
    const length = this.#int32();
    const at = this.#at;
    this.#at += length;
    if (this.#ascii !== null) return this.#ascii.substring(at - this.#from, at + length - this.#from);
    return this.#bytes.toString('utf8', at, at + length);
  }

  #describe(): void {
    const oid = this.#int32();
    const [schema, name] = [this.#name(), this.#name()];
    this.#at += 1; // the replica identity
    const columns: LoggedColumn[] = [];
    const keyColumns: string[] = [];
    for (let left = this.#int16(); left > 0; left -= 1) {
      const isKey = (this.#byte() & IS_KEY) !== 0;
      const column = { name: this.#name(), typeOid: this.#int32() >>> 0, typeMod: this.#int32() };
      columns.push(column);
      if (isKey) keyColumns.push(column.name);
    }
    this.#relations.set(oid, { oid: oid >>> 0, schema, name, columns, keyColumns });
  }

  #truncated(): LoggedRelation[] {
    const count = this.#int32();
    this.#at += 1; // options
    return Array.from({ length: count }, () => this.#relation());
  }

  #relation(): LoggedRelation {
    const relation = this.#relations.get(this.#int32());
    if (!relation) throw new Error('the log has a change of a table that it has not described');
    return relation;
  }

  #name(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    const name = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + 1;
    return name;
  }

  #byte(): number {
    return this.#bytes[this.#at++]!;
  }

  #int16(): number {
    return (this.#byte() << 8) | this.#byte();
  }

  #int32(): number {
    const [bytes, at] = [this.#bytes, this.#at];
    this.#at = at + 4;
    return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }

  /** Exact up to 2^53. */
  #int64(): number {
    return this.#int32() * 2 ** 32 + (this.#int32() >>> 0);
  }

  #lsn(): Lsn {
    const high = this.#int32() >>> 0;
    const low = this.#int32() >>> 0;
    return high < 2 ** 21 ? high * 2 ** 32 + low : (BigInt(high) << 32n) | BigInt(low);
  }
}
