import type { ChangeLines, ReadRequest } from '../../contract/connector.ts';
import { type ChangeFacts, factName } from '../../contract/change-fields.ts';
import { LineBuffer, type LineMark } from '../../kits/log/change-lines.ts';
import type { ByteReader } from './values/byte-reader.ts';
import { committedFacts, type RowsEvent } from './change-rows.ts';
import { type ValueOptions, valueSkipper } from './values/column-values.ts';
import type { Gtid } from './gtid.ts';
import type { LoggedTable } from './table-map.ts';
import { valueWriter, type WriteValue } from './values/value-lines.ts';

/** Of the values of a row, by the place of their column in the table; a start below 0: null. */
interface Image {
  starts: number[];
  ends: number[];
}

interface LineFacts {
  operation: string;
  isDelete: boolean;
}
const INSERT: LineFacts = { operation: 'insert', isDelete: false };
const UPDATE: LineFacts = { operation: 'update', isDelete: false };
const DELETE: LineFacts = { operation: 'delete', isDelete: true };

/** Where a column of the request comes from. */
type Source = { fact: keyof ChangeFacts } | { fact: null; place: number; write: WriteValue };

/** Collects changes of one table as lines of COPY text, straight from the bytes of the log. */
export class LineCollector {
  readonly #lines = new LineBuffer();
  /** Null: the table lacks some columns. */
  #sources: readonly Source[] | null = null;
  #skips: readonly ((reader: ByteReader) => void)[] = [];
  /** Places of the key's columns. */
  #key: readonly number[] = [];
  readonly #before: Image = { starts: [], ends: [] };
  readonly #after: Image = { starts: [], ends: [] };
  #begun: { gtid: Gtid; seconds: number } | null = null;
  #committed: ReturnType<typeof committedFacts> | null = null;
  /** Dates of the current row that become NULL. */
  #zeroDates = 0;

  constructor(
    private readonly request: ReadRequest,
    private readonly options: ValueOptions,
  ) {}

  get rows(): number {
    return this.#lines.rows;
  }

  /** Decodes the changes that follow by this table. */
  useTable({ columns }: LoggedTable): void {
    const { request } = this;
    const places = new Map(columns.map(({ name }, place) => [name, place]));
    const options = { ...this.options, onZeroDate: () => void this.#zeroDates++ };
    const sources = request.columns.flatMap(({ field }): Source[] => {
      const fact = factName(field);
      if (fact !== null) return [{ fact }];
      const place = places.get(field.path[0]!);
      return place === undefined ? [] : [{ fact: null, place, write: valueWriter(columns[place]!, field, options) }];
    });
    this.#sources = sources.length === request.columns.length ? sources : null;
    this.#skips = columns.map(valueSkipper);
    this.#key = request.primary_key.flatMap(([name]) => places.get(name!) ?? []);
  }

  begin(gtid: Gtid, seconds: number): void {
    this.#begun = { gtid, seconds };
    this.#committed = null;
  }

  /** @returns false: what is left of the event has to be read as rows */
  add({ operation, rows: reader, width, complete }: RowsEvent): boolean {
    if (!this.#sources || width !== this.#skips.length || !complete) return false;
    while (!reader.isAtEnd) {
      const { at } = reader;
      const isWritten = operation === 'update' ? this.#update(reader) : this.#row(reader, operation);
      if (!isWritten) {
        reader.at = at;
        this.#zeroDates = 0;
        return false;
      }
      for (; this.#zeroDates > 0; this.#zeroDates--) this.options.onZeroDate();
    }
    return reader.at === reader.end;
  }

  mark(): LineMark {
    return this.#lines.mark();
  }

  /** Forgets the lines since then. */
  cut(mark: LineMark): void {
    this.#lines.cut(mark);
  }

  /** Returns what has been collected, if anything, and empties the buffers. */
  take(): ChangeLines | null {
    return this.#lines.take();
  }

  #row(reader: ByteReader, operation: RowsEvent['operation']): boolean {
    this.#locate(reader, this.#after);
    return this.#line(reader, this.#after, operation === 'delete' ? DELETE : INSERT);
  }

  /** A changed key deletes the old row and inserts a new one. */
  #update(reader: ByteReader): boolean {
    this.#locate(reader, this.#before);
    this.#locate(reader, this.#after);
    const { bytes } = reader;
    if (this.#key.every((place) => this.#isSame(bytes, place))) return this.#line(reader, this.#after, UPDATE);
    const mark = this.#lines.mark();
    if (this.#line(reader, this.#before, DELETE) && this.#line(reader, this.#after, UPDATE)) return true;
    this.#lines.cut(mark);
    return false;
  }

  #isSame(bytes: Buffer, place: number): boolean {
    const [from, to] = [this.#before.starts[place]!, this.#after.starts[place]!];
    const size = this.#before.ends[place]! - from;
    if (from < 0 || to < 0 || size !== this.#after.ends[place]! - to) return false;
    for (let at = 0; at < size; at++) if (bytes[from + at] !== bytes[to + at]) return false;
    return true;
  }

  #line(reader: ByteReader, { starts }: Image, about: LineFacts): boolean {
    const lines = this.#lines;
    const sources = this.#sources!;
    const { at: end } = reader;
    for (let index = 0; index < sources.length; index++) {
      const source = sources[index]!;
      if (source.fact !== null) this.#fact(source.fact, about.operation);
      else if (starts[source.place]! < 0) lines.null();
      else {
        reader.at = starts[source.place]!;
        if (source.write(reader, lines)) continue;
        lines.undo();
        return false;
      }
    }
    reader.at = end;
    lines.endLine(about.isDelete);
    return true;
  }

  #fact(fact: keyof ChangeFacts, operation: string): void {
    this.#committed ??= committedFacts(this.#begun!.gtid, this.#begun!.seconds);
    this.#lines.ascii(fact === '_cdc_operation' ? operation : this.#committed[fact]);
  }

  #locate(reader: ByteReader, { starts, ends }: Image): void {
    const skips = this.#skips;
    const { bytes, at: nulls } = reader;
    reader.at += (skips.length + 7) >> 3;
    for (let place = 0; place < skips.length; place++) {
      if ((bytes[nulls + (place >> 3)]! & (1 << (place & 7))) !== 0) {
        starts[place] = -1;
        continue;
      }
      starts[place] = reader.at;
      skips[place]!(reader);
      ends[place] = reader.at;
    }
  }
}
