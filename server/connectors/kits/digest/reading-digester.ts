import { comparisonOf, orderOf } from '../../cells/comparison.ts';
import { KEYLESS_MASKS, type Mask } from '../../cells/masks.ts';
import type {
  Batch,
  Cell,
  DigestPlan,
  Digester,
  KeyDigest,
  LoadedUpTo,
  LogicalType,
  ReadRequest,
  RowKey,
  RowsDigest,
  SourceComparison,
} from '../../contract/connector.ts';
import { fieldByPath } from '../sql/request.ts';
import { canonicalCell, isPortable } from './canonical-cell.ts';

/** Number of groups that rows without a key are split into, by their hashes. As in the SQL of databases. */
const HASH_GROUPS = 1024n;
const MAX_BOUNDS = 4096;

interface DigestedRow {
  /** Null: a part of it is NULL. */
  key: RowKey | null;
  hashes: [bigint, bigint];
  cells: Cell[];
}

/** Rows that are compared by reading them. */
export interface ReadRows {
  /** Of the columns, to whose canonical texts the cells are brought. */
  types: LogicalType[];
  /** Those of the columns that are compared masked. */
  masks?: (Mask | undefined)[];
  /** Indexes of the columns of the key. */
  key: number[];
  read(): AsyncIterable<Pick<Batch, 'rows'>>;
  /** A row is newer than what was loaded. Null: unknown. */
  isChanged?(since: LoadedUpTo): ((cells: readonly Cell[]) => boolean) | null;
}

/**
 * Reduces the rows of a side that has no SQL for it, by the canonical texts of its cells. Each step reads all rows, and
 * may see later ones than the step before: keys that differ are looked at again anyway.
 */
export class ReadingDigester implements Digester {
  readonly dialect = null;
  readonly types: Digester['types'];
  readonly at = { instant: new Date().toISOString(), position: null };
  readonly #texts: ((cell: Cell) => Cell)[];

  constructor(private readonly side: ReadRows) {
    this.types = side.types.map((type) => ({ native: null, canonical: isPortable(type) }));
    this.#texts = side.types.map((type, at) => maskedCell(side.masks?.[at]) ?? canonicalCell(type));
  }

  static ofSource(
    { key, read }: SourceComparison,
    rows: (request: ReadRequest) => AsyncIterable<Batch>,
  ): ReadingDigester {
    const masks = read.columns.map(({ masking }) => KEYLESS_MASKS[masking]);
    const types = read.columns.map(({ field }, at) => (masks[at] ? 'string' : field.type));
    const unmasked = { ...read, columns: read.columns.map(({ field }) => ({ field, masking: 'none' as const })) };
    return new ReadingDigester({
      types,
      masks,
      key,
      read: () => rows(unmasked),
      isChanged: (since) => isAbove(read, since),
    });
  }

  async bounds(plan: DigestPlan, rows: number): Promise<RowKey[]> {
    if (this.side.key.length === 0) return [];
    const sampled: RowKey[] = [];
    for await (const { key } of this.#rows(plan)) if (key && Math.random() * rows < 1) sampled.push(key);
    const step = Math.ceil(sampled.length / MAX_BOUNDS);
    return sampled.toSorted(compareKeys).filter((_, index) => index % step === 0);
  }

  async ranges(plan: DigestPlan, bounds: RowKey[]): Promise<RowsDigest[]> {
    const total = this.side.key.length > 0 ? bounds.length + 1 : Number(HASH_GROUPS);
    const sums = Array.from({ length: total }, () => new Sum());
    for await (const row of this.#rows(plan)) sums[this.#rangeOf(row, bounds)]!.add(row);
    return sums.map((sum) => sum.digest());
  }

  async rows(plan: DigestPlan, bounds: RowKey[], ranges: number[]): Promise<KeyDigest[]> {
    const wanted = new Set(ranges);
    if (this.side.key.length > 0) {
      return this.#byKey(plan, (row) => wanted.has(this.#rangeOf(row, bounds)), null);
    }
    // The hash is the key: rows differ by how often they are there.
    const found = new Map<string, KeyDigest>();
    for await (const row of this.#rows(plan)) {
      if (!wanted.has(this.#rangeOf(row, bounds))) continue;
      const key = row.hashes.map(String);
      const one = found.get(key.join()) ?? { key, count: 0, sum: '', changed: null };
      found.set(key.join(), { ...one, count: one.count + 1 });
    }
    return [...found.values()];
  }

  async find(plan: DigestPlan, keys: RowKey[], since: LoadedUpTo): Promise<KeyDigest[]> {
    const wanted = new Set(keys.map((key) => JSON.stringify(key)));
    return this.#byKey(plan, ({ key }) => wanted.has(JSON.stringify(key)), since);
  }

  async close(): Promise<void> {}

  /** Rows of a key that is not unique are added up. */
  async #byKey(
    plan: DigestPlan,
    isWanted: (row: DigestedRow) => boolean,
    since: LoadedUpTo | null,
  ): Promise<KeyDigest[]> {
    const isChanged = (since && this.side.isChanged?.(since)) ?? null;
    const found = new Map<string, { key: RowKey; sum: Sum; changed: boolean }>();
    for await (const row of this.#rows(plan)) {
      if (row.key === null || !isWanted(row)) continue;
      const id = JSON.stringify(row.key);
      const one = found.get(id) ?? { key: row.key, sum: new Sum(), changed: false };
      one.sum.add(row);
      one.changed ||= isChanged?.(row.cells) ?? false;
      found.set(id, one);
    }
    return [...found.values()].map(({ key, sum, changed }) => ({
      key,
      ...sum.digest(),
      changed: isChanged ? changed : null,
    }));
  }

  #rangeOf({ key, hashes }: DigestedRow, bounds: readonly RowKey[]): number {
    if (this.side.key.length === 0) return Number(hashes[0] % HASH_GROUPS);
    if (key === null) return bounds.length;
    let [from, to] = [0, bounds.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (compareKeys(key, bounds[middle]!) < 0) to = middle;
      else from = middle + 1;
    }
    return from;
  }

  async *#rows({ forms }: DigestPlan): AsyncGenerator<DigestedRow> {
    const { key } = this.side;
    for await (const { rows } of this.side.read()) {
      for (const cells of rows) {
        const texts = cells.map((cell, at) => this.#texts[at]!(cell));
        const keyed = key.map((index) => texts[index]!);
        const hashes = hashesOf(texts.filter((_, at) => forms[at] !== 'none'));
        yield { key: keyed.includes(null!) ? null : keyed, hashes, cells };
      }
    }
  }
}

const maskedCell = (mask: Mask | undefined) => mask && ((cell: Cell) => (cell === null ? null : mask(cell)));

/** Only a cursor tells what was not loaded yet. */
function isAbove(read: ReadRequest, { state }: LoadedUpTo): ((cells: readonly Cell[]) => boolean) | null {
  const { sync_mode, cursor_field, columns } = read;
  const loaded = state?.cursor;
  if (sync_mode !== 'incremental' || !cursor_field || loaded == null) return null;
  const cursor = fieldByPath(read, cursor_field);
  const index = columns.findIndex(({ field }) => field.path.join('\0') === cursor_field.join('\0'));
  if (index < 0) return null;
  const order = orderOf(comparisonOf(cursor));
  return (cells) => cells[index] != null && order(cells[index], loaded) > 0;
}

/** Two numbers of 60 bits out of the MD5 of the values with their lengths, as databases compute them. */
function hashesOf(texts: readonly Cell[]): [bigint, bigint] {
  const hash = new Bun.CryptoHasher('md5');
  for (const text of texts) hash.update(text === null ? '-' : `${codePoints(text)}:${text}`);
  const digest = hash.digest('hex');
  return [BigInt(`0x${digest.slice(0, 15)}`), BigInt(`0x${digest.slice(15, 30)}`)];
}

function codePoints(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at += 1) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
    if (isPair) count -= 1;
  }
  return count;
}

/** By their bytes, column by column. */
function compareKeys(a: RowKey, b: RowKey): number {
  for (let at = 0; at < a.length; at += 1) {
    const order = Buffer.compare(Buffer.from(a[at]!), Buffer.from(b[at]!));
    if (order !== 0) return order;
  }
  return 0;
}

class Sum {
  #count = 0;
  readonly #sums = [0n, 0n];

  add({ hashes }: DigestedRow): void {
    this.#count += 1;
    for (const [at, hash] of hashes.entries()) this.#sums[at]! += hash;
  }

  digest(): RowsDigest {
    return { count: this.#count, sum: this.#count === 0 ? '' : this.#sums.join(' ') };
  }
}
