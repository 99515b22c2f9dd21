import type { PlainValues } from './plain-values.ts';
import type { ValueOrder } from './types.ts';

/** The smallest and the largest value of a column in one row group: readers skip groups by them. In PLAIN, texts bare. */
export interface Bounds {
  min: Uint8Array;
  max: Uint8Array;
}

/** Longer texts would make the footer large. */
const MAX_TEXT_BYTES = 256;
/** Before a text. */
const LENGTH_BYTES = 4;

/** Null if there are no values, or none that readers could trust. */
export function boundsOf(values: PlainValues, order: ValueOrder): Bounds | null {
  if (order === null || values.end === values.begin) return null;
  return FINDERS[order](values);
}

const FINDERS: Record<Exclude<ValueOrder, null>, (values: PlainValues) => Bounds | null> = {
  int32: ({ words, begin, end }) => {
    let [min, max] = [words[begin >> 2]!, words[begin >> 2]!];
    for (let at = begin >> 2; at < end >> 2; at += 1) {
      const value = words[at]!;
      if (value < min) min = value;
      else if (value > max) max = value;
    }
    return { min: bytesOf(Int32Array.of(min)), max: bytesOf(Int32Array.of(max)) };
  },
  // By halves: a BigInt for each value would be an object on the heap.
  int64: ({ words, begin, end }) => {
    let minLow = words[begin >> 2]! >>> 0;
    let minHigh = words[(begin >> 2) + 1]!;
    let [maxLow, maxHigh] = [minLow, minHigh];
    for (let at = begin >> 2; at < end >> 2; at += 2) {
      const low = words[at]! >>> 0;
      const high = words[at + 1]!;
      if (high < minHigh || (high === minHigh && low < minLow)) {
        minLow = low;
        minHigh = high;
      } else if (high > maxHigh || (high === maxHigh && low > maxLow)) {
        maxLow = low;
        maxHigh = high;
      }
    }
    return { min: bytesOf(Int32Array.of(minLow, minHigh)), max: bytesOf(Int32Array.of(maxLow, maxHigh)) };
  },
  float: ({ bytes, begin, end }) => {
    const found = floatBounds(new Float32Array(bytes.buffer, begin, (end - begin) >> 2));
    return found && { min: bytesOf(Float32Array.of(found.min)), max: bytesOf(Float32Array.of(found.max)) };
  },
  double: ({ bytes, begin, end }) => {
    const found = floatBounds(new Float64Array(bytes.buffer, begin, (end - begin) >> 3));
    return found && { min: bytesOf(Float64Array.of(found.min)), max: bytesOf(Float64Array.of(found.max)) };
  },
  text(values) {
    const { bytes, view, begin, end } = values;
    let [min, max] = [begin, begin];
    // Where they differ first, and their words there.
    let split = NEVER;
    let [minWord, maxWord] = [0, 0];
    for (let at = begin; at < end; at += LENGTH_BYTES + view.getUint32(at, true)) {
      if (view.getUint32(at, true) >= split) {
        let index = LENGTH_BYTES;
        while (index < split && view.getInt32(at + index) === view.getInt32(min + index)) index += 4;
        if (index === split) {
          const word = wordAt(view, at + split);
          // Nearly all texts are between the two by this word alone.
          if (word > minWord && word < maxWord) continue;
          if (word < minWord) [min, minWord] = [at, word];
          else if (word > maxWord) [max, maxWord] = [at, word];
          else if (word === minWord) min = compareTexts(values, at, min) < 0 ? at : min;
          else if (compareTexts(values, at, max) > 0) max = at;
          continue;
        }
      }
      if (compareTexts(values, at, min) < 0) min = at;
      else if (compareTexts(values, at, max) > 0) max = at;
      else continue;
      split = splitOf(view, min, max);
      if (split !== NEVER) [minWord, maxWord] = [wordAt(view, min + split), wordAt(view, max + split)];
    }
    const lengths = [view.getUint32(min, true), view.getUint32(max, true)] as const;
    if (Math.max(...lengths) > MAX_TEXT_BYTES) return null;
    const textAt = (at: number, length: number) => bytes.slice(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
    return { min: textAt(min, lengths[0]), max: textAt(max, lengths[1]) };
  },
};

/** Null with a NaN, which some readers sort behind all numbers. A zero may be either of the two. */
function floatBounds(values: Float32Array | Float64Array): { min: number; max: number } | null {
  let [min, max] = [values[0]!, values[0]!];
  // An iterator would take five times as long.
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at]!;
    if (Number.isNaN(value)) return null;
    if (value < min) min = value;
    else if (value > max) max = value;
  }
  return { min: min === 0 ? -0 : min, max: max === 0 ? 0 : max };
}

/** Four bytes as an integer with a sign, in the order of the bytes. As a double it would take longer. */
const wordAt = (view: DataView, at: number) => view.getInt32(at) ^ -0x80000000;

/** Instead of a distance: no text is as long. */
const NEVER = 0x7fffffff;

/** The distance from the lengths at these offsets to the first word in which the texts behind them differ. */
function splitOf(view: DataView, a: number, b: number): number {
  const end = Math.min(view.getUint32(a, true), view.getUint32(b, true));
  for (let index = LENGTH_BYTES; index <= end; index += 4)
    if (view.getInt32(a + index) !== view.getInt32(b + index)) return index;
  return NEVER;
}

/** Of the texts behind the lengths at these offsets. By words: most texts differ in the first few bytes or in none. */
function compareTexts({ view }: PlainValues, a: number, b: number): number {
  const [aLength, bLength] = [view.getUint32(a, true), view.getUint32(b, true)];
  const end = LENGTH_BYTES + Math.min(aLength, bLength);
  let index = LENGTH_BYTES;
  for (; index + 4 <= end; index += 4) {
    const difference = view.getUint32(a + index) - view.getUint32(b + index);
    if (difference !== 0) return difference;
  }
  for (; index < end; index += 1) {
    const difference = view.getUint8(a + index) - view.getUint8(b + index);
    if (difference !== 0) return difference;
  }
  return aLength - bLength;
}

const bytesOf = ({ buffer }: Int32Array | Float32Array | Float64Array) => new Uint8Array(buffer);
