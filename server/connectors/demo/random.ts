/** The finalizer of MurmurHash3: distributes 32 bits evenly and gives the same result on every machine. */
export function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The seed of one row. Its content depends on nothing else. */
export const rowSeed = (seed: number, salt: number, index: number) =>
  mix(mix(mix(seed) ^ salt) + Math.imul(index, 0x9e3779b1));

/** The n-th random number of a row, from 0 to 2^32 - 1. */
export const draw = (row: number, n: number) => mix(row + Math.imul(n + 1, 0x85157af5));

export const below = (row: number, n: number, limit: number) => draw(row, n) % limit;

export const pick = (row: number, n: number, choices: readonly string[]) =>
  choices[draw(row, n) % choices.length] as string;

const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

const hex32 = (n: number) => `${BYTES[n >>> 24]}${BYTES[(n >>> 16) & 255]}${BYTES[(n >>> 8) & 255]}${BYTES[n & 255]}`;

/** A version 4 UUID from the random numbers n to n + 3 of a row. */
export function uuid(row: number, n: number): string {
  const b = hex32(draw(row, n + 1));
  const c = hex32(draw(row, n + 2));
  return `${hex32(draw(row, n))}-${b.slice(0, 4)}-4${b.slice(5)}-8${c.slice(1, 4)}-${c.slice(4)}${hex32(draw(row, n + 3))}`;
}
