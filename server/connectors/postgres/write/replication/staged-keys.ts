import { encodeCopyText } from '../../../cells/copy-text.ts';
import type { Batch } from '../../../contract/connector.ts';
import type { PgTarget } from '../target.ts';

/** Beyond these a commit is taken to have any key: it merges for long, so that one at a time hardly costs more. */
const MAX_KEYS = 100_000;

const [TAB, LINE_FEED, BACKSLASH] = [0x09, 0x0a, 0x5c];
const INTEGERS: readonly string[] = ['smallint', 'integer', 'bigint'];

/**
 * Places of the key's columns, in order, if keys that the table takes for equal always have the same texts. Null: they
 * may differ, as 1.0 and 1.00 do.
 */
export function exactKey({ columns, typed, primary_key }: PgTarget): readonly number[] | null {
  const places = columns.flatMap(({ name }, at) => (primary_key.includes(name) ? [at] : []));
  const isExact = places.every((at) => {
    const [{ type: logical, source_type }, { type }] = [columns[at]!, typed[at]!];
    if (INTEGERS.includes(type)) return logical === 'integer';
    return type === 'text' || (type === 'uuid' && source_type === type);
  });
  return isExact && places.length > 0 ? places : null;
}

/** SQL that is true where no column of these tables takes texts for equal that differ. */
export const comparesBytes = (tables: readonly PgTarget[]) => `not exists (
  select from pg_catalog.pg_attribute a join pg_catalog.pg_collation c on c.oid = a.attcollation
   where a.attrelid = any (array[${tables.map(({ existing }) => existing?.oid ?? 0).join(', ')}]::oid[])
     and pg_catalog.to_jsonb(c) ->> 'collisdeterministic' = 'false')`;

/** The keys of all rows of a commit, as hashes: two commits without a common one can be merged in any order. */
export class StagedKeys {
  readonly #hashes = new Set<number>();
  /** A row may have any key. */
  #any = false;

  /** @param keys of each stream, as `exactKey` gives them */
  constructor(private readonly keys: readonly (readonly number[] | null)[]) {}

  add(stream: number, { rows, changes, lines }: Batch): void {
    const key = this.keys[stream]!;
    this.#any ||= key === null || changes?.some(({ operation }) => operation === 'truncate') === true;
    if (this.#any) return;
    if (lines) this.#addLines(stream, lines.bytes, key);
    const cells = rows.map((row) => key.map((at) => row[at]!));
    if (cells.length > 0)
      this.#addLines(
        stream,
        encodeCopyText(cells, () => {}),
        [...key.keys()],
      );
    this.#any ||= this.#hashes.size > MAX_KEYS;
  }

  isDisjointFrom(other: StagedKeys): boolean {
    return !this.#any && !other.#any && this.#hashes.isDisjointFrom(other.#hashes);
  }

  clear(): void {
    this.#hashes.clear();
    this.#any = false;
  }

  /** Reads each line up to the end of its key: hashes of substrings would take five times as long. */
  #addLines(stream: number, bytes: Buffer, key: readonly number[]): void {
    const last = key.at(-1)!;
    for (let at = 0; at < bytes.length; ) {
      let [high, low] = [stream ^ 0x811c9dc5, stream ^ 0x9e3779b9];
      for (let column = 0; column <= last; column++) {
        const isKey = key.includes(column);
        for (; bytes[at] !== TAB && bytes[at] !== LINE_FEED; at++) {
          const byte = bytes[at]!;
          if (!isKey) continue;
          // Sources may write the same character in several ways.
          if (byte === BACKSLASH) this.#any = true;
          high = Math.imul(high ^ byte, 0x01000193);
          low = Math.imul(low ^ byte, 0x85ebca6b) ^ (low >>> 15);
        }
        if (isKey) high = Math.imul(high ^ TAB, 0x01000193);
        if (column < last) at += 1;
      }
      this.#hashes.add((high >>> 0) * 0x200000 + (low >>> 11));
      const end = bytes.indexOf(LINE_FEED, at);
      at = end < 0 ? bytes.length : end + 1;
    }
  }
}
