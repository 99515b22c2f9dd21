import { ConfigurationError } from '../../connectors/contract/errors.ts';

/** The table has 24 bytes for each key, at most 70 % full. */
const MAX_KEYS = 10_000_000;
const WORDS = 6;
const FILL = 0.7;
const GROWTH = 1.7;

/** The destination holds the row. */
export const PRESENT = 2;
/** The read contains the key. */
export const SEEN = 4;
/** A row was sent and no response is recorded. */
export const UNSURE = 8;
/** Written by a compaction. */
export const KEPT = 16;
const USED = 1;

const digest = new Uint8Array(32);
const words = new Uint32Array(digest.buffer);

/** The first words of the SHA-256 of a text. */
export function hashOf(text: string): readonly [number, number, number] {
  Bun.SHA256.hash(text, digest);
  return [words[0]!, words[1]!, words[2]!];
}

/** Keys and hashes of contents by the hash of the key, in one array: a million keys take some 40 MB. */
export class KeyTable {
  #slots: Uint32Array;
  #capacity: number;
  #keys = 0;

  constructor(expected: number) {
    this.#capacity = Math.max(1024, Math.ceil(expected / FILL) + 1);
    this.#slots = new Uint32Array(this.#capacity * WORDS);
  }

  /** The slot of a key, which is added if it is new. Valid until the next call. */
  slot(key: string): number {
    if (this.#keys + 1 > this.#capacity * FILL) this.#grow();
    const hash = hashOf(key);
    const at = this.#find(hash[0], hash[1], hash[2]);
    if (this.flags(at) === 0) {
      this.#keys += 1;
      this.#slots.set([...hash, 0, 0, USED], at);
    }
    return at;
  }

  flags(slot: number): number {
    return this.#slots[slot + 5]!;
  }

  content(slot: number): readonly [number, number] {
    return [this.#slots[slot + 3]!, this.#slots[slot + 4]!];
  }

  set(slot: number, flags: number): void {
    this.#slots[slot + 5]! |= flags;
  }

  clear(slot: number, flags: number): void {
    this.#slots[slot + 5]! &= ~flags;
  }

  setContent(slot: number, content: readonly [number, number]): void {
    this.#slots[slot + 3] = content[0];
    this.#slots[slot + 4] = content[1];
  }

  /** Number of keys that pass a test of their flags. */
  count(test: (flags: number) => boolean): number {
    let found = 0;
    for (let at = 5; at < this.#slots.length; at += WORDS) if (test(this.#slots[at]!)) found += 1;
    return found;
  }

  #find(first: number, second: number, third: number): number {
    const slots = this.#slots;
    for (let index = first % this.#capacity; ; index = index + 1 === this.#capacity ? 0 : index + 1) {
      const at = index * WORDS;
      const isSame = slots[at] === first && slots[at + 1] === second && slots[at + 2] === third;
      if (slots[at + 5] === 0 || isSame) return at;
    }
  }

  #grow(): void {
    if (this.#keys >= MAX_KEYS) {
      throw new ConfigurationError(
        'too_many_rows_to_compare',
        `The stream has more than ${MAX_KEYS} rows, which is the limit for sending differences. Filter it, or write it by append`,
      );
    }
    const old = this.#slots;
    this.#capacity = Math.ceil(this.#capacity * GROWTH);
    this.#slots = new Uint32Array(this.#capacity * WORDS);
    for (let at = 0; at < old.length; at += WORDS) {
      if (old[at + 5] === 0) continue;
      this.#slots.set(old.subarray(at, at + WORDS), this.#find(old[at]!, old[at + 1]!, old[at + 2]!));
    }
  }
}
