/** A value of Thrift's compact protocol: its type and its bytes. Parquet's metadata is written in it. */
export interface Value {
  type: number;
  write(out: number[]): void;
}

const [TRUE, FALSE, BYTE, I32, I64, BINARY, LIST, STRUCT] = [1, 2, 3, 5, 6, 8, 9, 12] as const;
/** Lists with fewer items, and fields with smaller steps between their numbers, store that beside the type. */
const SHORT = 15;

/** Not negative, as all numbers of Parquet's metadata here. */
const number = (type: number) => (value: number) => ({
  type,
  write: (out: number[]) => writeVarint(out, 2 * value),
});

export const i32 = number(I32);
export const i64 = number(I64);

export const byte = (value: number): Value => ({ type: BYTE, write: (out) => out.push(value) });

/** In a struct only: there the type is the value. */
export const flag = (value: boolean): Value => ({ type: value ? TRUE : FALSE, write: () => {} });

export const text = (value: string): Value => binary(Buffer.from(value));

export const binary = (bytes: Uint8Array): Value => ({
  type: BINARY,
  write(out) {
    writeVarint(out, bytes.length);
    for (const one of bytes) out.push(one);
  },
});

/** Of items of one type. */
export const list = (items: readonly Value[]): Value => ({
  type: LIST,
  write(out) {
    const type = items[0]?.type ?? STRUCT;
    if (items.length < SHORT) out.push((items.length << 4) | type);
    else {
      out.push((SHORT << 4) | type);
      writeVarint(out, items.length);
    }
    for (const item of items) item.write(out);
  },
});

/** Of values by the numbers of their fields, which are iterated in order. */
export const struct = (fields: Record<number, Value | undefined>): Value => ({
  type: STRUCT,
  write(out) {
    let before = 0;
    for (const [key, value] of Object.entries(fields)) {
      if (!value) continue;
      const step = Number(key) - before;
      before += step;
      out.push((step << 4) | value.type);
      value.write(out);
    }
    out.push(0);
  },
});

export function encode(value: Value): Buffer {
  const out: number[] = [];
  value.write(out);
  return Buffer.from(out);
}

/** Seven bits a byte, the lowest first. Sizes of files exceed 32 bits, where `<<` and `&` end. */
export function writeVarint(out: number[], value: number): void {
  let rest = value;
  while (rest >= 0x80) {
    out.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  out.push(rest);
}
