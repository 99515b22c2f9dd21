import type { Mask } from '../../connectors/cells/masks.ts';
import { DIGEST_BYTES } from '../../platform/digests.ts';
import { type MaskKeys, maskerOf } from '../mapping.ts';
import type { TransferPlan } from '../../pipeline/transfer-plan.ts';
import { Output } from './output.ts';

const SIGNATURE_BYTES = 19;
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;
/** Bytes of a piece that are likely to complete a row that began before it. */
const HEAD_BYTES = 4096;
const EMPTY = Buffer.alloc(0);

type TextOf = (value: Buffer) => string | Uint8Array;
const itself: TextOf = (value) => value;

/** What a mask takes of values in binary form, by the bare names of their types at the source. */
const TEXTS: Record<string, TextOf> = {
  text: itself,
  'character varying': itself,
  character: itself,
  json: itself,
  smallint: (value) => String(value.readInt16BE()),
  integer: (value) => String(value.readInt32BE()),
  bigint: (value) => String(value.readBigInt64BE()),
};

const textOf = (type: string | null): TextOf | undefined => TEXTS[(type ?? '').replace(/\(\d+\)$/, '')];

/** Whether the plan can be applied to the rows of a binary COPY. */
export function canMapCopyBinary({ columns, filters, extra }: TransferPlan): boolean {
  if (filters.length > 0 || extra.length > 0) return false;
  return columns.every(
    ({ mapping, masking, field }) => !mapping && (masking === 'none' || textOf(field.source_type) !== undefined),
  );
}

interface MaskedColumn {
  index: number;
  mask: Mask;
  text: TextOf;
}

/**
 * Masks the rows of a binary COPY. Each field begins with its length, so that the others are skipped, where lines of text
 * have to be searched byte by byte. Both servers spend a third to a half less on this form, too.
 */
export class CopyBinaryMapper {
  readonly #masked: readonly MaskedColumn[];
  /** Where the fields of a row begin. */
  readonly #fields: Int32Array;
  #begun = false;
  /** The beginning of the signature or of a row, the bytes it has, and how many it has at least once it is complete. */
  #carry: Buffer[] = [];
  #carried = 0;
  #needed = 0;
  #out = new Output(0);
  /** How much longer the rows of the last piece have become. */
  #growth = 1;

  constructor(plan: TransferPlan, keys: MaskKeys) {
    this.#fields = new Int32Array(plan.columns.length);
    this.#masked = plan.columns.flatMap(({ masking, field }, index) => {
      const mask = maskerOf(masking, keys);
      return mask ? [{ index, mask, text: textOf(field.source_type)! }] : [];
    });
  }

  /** Takes any piece of the copy and returns the rows that it completes. */
  map(piece: Uint8Array): Uint8Array {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    if (this.#isTooShort(bytes)) {
      this.#keep(bytes);
      return EMPTY;
    }
    const given = this.#carried + bytes.length;
    this.#out = new Output(Math.ceil(given * this.#growth) + HEAD_BYTES);
    const taken = this.#carried === 0 ? 0 : this.#complete(bytes);
    const rest = bytes.subarray(taken);
    const end = this.#write(rest, Number.POSITIVE_INFINITY);
    if (end < rest.length) this.#keep(rest.subarray(end));
    const { written } = this.#out;
    this.#growth = Math.max(1, written.length / Math.max(1, given));
    return written;
  }

  #isTooShort(bytes: Buffer): boolean {
    return this.#carried > 0 && this.#carried + bytes.length < this.#needed;
  }

  #keep(bytes: Buffer): void {
    this.#carry.push(Buffer.from(bytes));
    this.#carried += bytes.length;
  }

  /** Joins what has begun with no more bytes than it needs. @returns how many those are */
  #complete(bytes: Buffer): number {
    while (!this.#isTooShort(bytes)) {
      const head = Buffer.concat([
        ...this.#carry,
        bytes.subarray(0, Math.max(this.#needed - this.#carried, HEAD_BYTES)),
      ]);
      const end = this.#write(head, 1);
      if (end === 0) continue;
      const taken = end - this.#carried;
      [this.#carry, this.#carried] = [[], 0];
      return taken;
    }
    this.#keep(bytes);
    return bytes.length;
  }

  /** Writes up to `most` complete rows. @returns where the next one begins */
  #write(input: Buffer, most: number): number {
    const view = new DataView(input.buffer, input.byteOffset, input.length);
    let at = 0;
    // The text between two masked fields is one copy, even across rows.
    let from = 0;
    for (let left = most; left > 0 && at < input.length; left -= 1) {
      const end = this.#begun ? findFields(view, at, this.#fields) : SIGNATURE_BYTES;
      if (end > input.length) {
        this.#needed = end - at;
        break;
      }
      if (this.#begun && end - at > COUNT_BYTES) from = this.#mask(input, view, from);
      this.#begun = true;
      at = end;
    }
    this.#out.append(input, from, at);
    return at;
  }

  /** @returns up to where the input is written */
  #mask(input: Buffer, view: DataView, from: number): number {
    const out = this.#out;
    let written = from;
    for (const { index, mask, text } of this.#masked) {
      const field = this.#fields[index]!;
      const length = view.getInt32(field);
      // NULL stays NULL.
      if (length < 0) continue;
      const start = field + LENGTH_BYTES;
      const end = start + length;
      out.append(input, written, field);
      if (mask.digest && text === itself) {
        out.int32(2 * DIGEST_BYTES);
        out.hex(mask.digest(input, start, end));
      } else {
        const value = mask(text(input.subarray(start, end)));
        out.int32(value.length);
        out.latin1(value);
      }
      written = end;
    }
    return written;
  }
}

/** @returns the end of the row; of one that is not complete, an offset behind the input that it reaches at least */
function findFields(view: DataView, at: number, fields: Int32Array): number {
  let end = at + COUNT_BYTES;
  if (end > view.byteLength) return end;
  // The trailer has no fields.
  const count = view.getInt16(at);
  for (let field = 0; field < count; field += 1) {
    if (end + LENGTH_BYTES > view.byteLength) return end + LENGTH_BYTES;
    fields[field] = end;
    end += LENGTH_BYTES + Math.max(view.getInt32(end), 0);
  }
  return end;
}
