import type { LogicalType } from '../../../../contract/connector.ts';
import type { FixedColumn } from '../../settings/fixed-width.ts';
import { type ByteCheck, byteCheck } from '../csv/byte-checks.ts';
import { MisfitError, type Transcoded } from '../csv/transcoder.ts';
import { cellsOf, type Layout, LineError } from './line-cells.ts';

const TAB = 9;
const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const BACKSLASH = 92;
const ESCAPED: Record<number, number> = { 9: 116, 13: 114, 92: 92 };

/** How to transcode lines in UTF-8 whose NULL is an empty cell. */
export interface LinePlan {
  layout: Layout;
  /** Those that are asked for, in their order. */
  columns: (FixedColumn & { type: LogicalType })[];
  /** Lines to leave out. */
  skip: number;
}

/** A line that cannot be cut. `lines`: number of lines before it. */
export class BrokenLineError extends Error {
  constructor(
    readonly lines: number,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Transcodes lines to PostgreSQL COPY text without creating strings: several times as fast as cell by cell, with the same
 * rules (tests compare the two).
 */
export class LineTranscoder {
  private output = new Uint8Array(0);
  private checks: (ByteCheck | null)[] = [];
  private to = 0;
  private rows = 0;
  private lines = 0;
  private nuls = 0;
  private skip: number;
  /** Where the characters of a line start, and where it ends. */
  private starts = new Int32Array(1024);

  constructor(private readonly plan: LinePlan) {
    this.skip = plan.skip;
  }

  /** @param input whole lines in UTF-8. @throws BrokenLineError, MisfitError */
  run(input: Uint8Array, isAscii: boolean): Transcoded {
    [this.to, this.rows, this.lines, this.nuls] = [0, 0, 0, 0];
    this.reserve(input.length + (input.length >> 1));
    for (let at = 0; at < input.length; this.lines++) {
      const end = input.indexOf(NEWLINE, at);
      if (this.skip > 0) this.skip--;
      else this.line(input, at, input[end - 1] === RETURN && end > at ? end - 1 : end, isAscii);
      at = end + 1;
    }
    const { rows, lines, nuls } = this;
    return { output: this.output.subarray(0, this.to), read: input.length, rows, lines, nuls };
  }

  private line(input: Uint8Array, from: number, to: number, isAscii: boolean): void {
    const { layout, columns } = this.plan;
    if (from === to && layout.columns.length > 1) return;
    const characters = isAscii ? -1 : this.charactersOf(input, from, to);
    const length = characters < 0 ? to - from : characters;
    if (from < to) this.refuseLength(input, { from, to, length, characters });
    for (let at = 0; at < columns.length; at++) {
      const column = columns[at] as LinePlan['columns'][number];
      const first = Math.min(column.from, length);
      const last = column.to === null ? length : Math.min(column.to, length);
      if (characters < 0) this.cell(input, from + first, from + last, at);
      else this.cell(input, this.starts[first] as number, this.starts[last] as number, at);
    }
    this.output[this.to - 1] = NEWLINE;
    this.rows++;
  }

  private cell(input: Uint8Array, from: number, to: number, at: number): void {
    const { trims } = this.plan.layout;
    let begin = from;
    let end = to;
    if (trims.end) while (end > begin && input[end - 1] === SPACE) end--;
    if (trims.start) while (begin < end && input[begin] === SPACE) begin++;
    this.reserve(2 * (end - begin) + 3);
    const { output } = this;
    if (begin >= end) {
      output[this.to++] = BACKSLASH;
      output[this.to++] = 78;
    } else {
      const start = this.to;
      let next = start;
      const nuls = this.nuls;
      for (let place = begin; place < end; place++) {
        const byte = input[place] as number;
        if (byte > RETURN && byte !== BACKSLASH) output[next++] = byte;
        else if (byte === 0) this.nuls++;
        else {
          const escaped = ESCAPED[byte];
          if (escaped !== undefined) output[next++] = BACKSLASH;
          output[next++] = escaped ?? byte;
        }
      }
      this.to = next;
      const check = this.checks[at];
      if (check && (nuls !== this.nuls || !check(start, next))) this.misfit(at);
    }
    output[this.to++] = TAB;
  }

  private misfit(at: number): never {
    throw new MisfitError(this.lines, this.plan.columns[at] as LinePlan['columns'][number]);
  }

  private refuseLength(
    input: Uint8Array,
    { from, to, length, characters }: { from: number; to: number; length: number; characters: number },
  ): void {
    const { layout } = this.plan;
    if (length === layout.length) return;
    if (length < layout.length ? layout.allow_short_lines : layout.is_open) return;
    if (length > layout.length) {
      let at = characters < 0 ? from + layout.length : (this.starts[layout.length] as number);
      while (at < to && input[at] === SPACE) at++;
      if (at === to) return;
    }
    try {
      cellsOf(Buffer.from(input.buffer, input.byteOffset + from, to - from).toString('utf8'), layout);
    } catch (error) {
      if (error instanceof LineError) throw new BrokenLineError(this.lines, error.message);
      throw error;
    }
  }

  /** Fills `starts`. @returns the number of characters; -1 if each is one byte */
  private charactersOf(input: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to && (input[at] as number) < 0x80) at++;
    if (at === to) return -1;
    if (to - from >= this.starts.length) this.starts = new Int32Array(2 * (to - from) + 1);
    const { starts } = this;
    let count = 0;
    for (at = from; at < to; at++) {
      // Other bytes continue a character.
      if (((input[at] as number) & 0xc0) !== 0x80) starts[count++] = at;
    }
    starts[count] = to;
    return count;
  }

  private reserve(more: number): void {
    if (this.to + more <= this.output.length) return;
    const larger = new Uint8Array(2 * (this.to + more));
    larger.set(this.output.subarray(0, this.to));
    this.output = larger;
    this.checks = this.plan.columns.map(({ type }) => byteCheck(type, larger));
  }
}
