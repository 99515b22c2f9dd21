import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Digester,
  DigestForm,
  DigestPlan,
  KeyDigest,
  LoadedUpTo,
  RowKey,
  RowsDigest,
} from '../../connectors/contract/connector.ts';
import { limitMemoryGrowth } from '../pace/limit-memory-growth.ts';

/** Average number of rows in a range. */
const RANGE_ROWS = 4096;
/**
 * Ranges that differ are looked at so many at a time: some 16,000 rows of each side, or 65,000 where a side has no SQL and
 * reads all of its rows each time.
 */
const RANGES_AT_ONCE = { query: 4, read: 16 };
/** Of a key with its count and hash, as a query returns it. */
const ROW_BYTES = 100;
/** Enough to see what is wrong. A table that differs as a whole would not fit in memory. */
export const MAX_DIFFERENCES = 10_000;
const ROUNDS = 3;
const PAUSE_MS = 1000;

/** Opens a snapshot of each side. */
export interface ComparedSides {
  source(): Promise<Digester>;
  destination(): Promise<Digester>;
}

export interface Difference {
  kind: 'missing' | 'extra' | 'different';
  key: RowKey;
  /** The source has changed since the stream was loaded; null: unknown. */
  changed_since: boolean | null;
}

export interface Result {
  source_rows: number;
  destination_rows: number;
  ranges: number;
  ranges_different: number;
  is_partial: boolean;
  differences: Difference[];
  forms: DigestForm[];
  source_at: Digester['at'];
  destination_at: Digester['at'];
}

interface Comparing {
  /** Throws for a plan by which the stream cannot be compared. */
  refuse(plan: DigestPlan): void;
  /** Rows have a key. */
  key: boolean;
  since: LoadedUpTo;
  /** A run applies changes meanwhile, so that rows may be on their way for some time. */
  is_live: boolean;
  signal: AbortSignal;
}

interface Pair {
  key: RowKey;
  source: KeyDigest | null;
  destination: KeyDigest | null;
}

/** Compares a stream with its table: by ranges, then by the keys of the ranges that differ, until these hold still. */
export async function compare(
  sides: ComparedSides,
  { refuse, key, since, is_live, signal }: Comparing,
): Promise<Result> {
  const { found, pairs, plan } = await openBoth(sides, (source, destination) =>
    compareOnce(source, destination, refuse),
  );
  const differences = key
    ? await recheck(sides, { pairs, plan, since, is_live, signal })
    : pairs.map((pair) => differenceOf(pair, null));
  return { ...found, differences };
}

async function openBoth<T>(
  sides: ComparedSides,
  work: (source: Digester, destination: Digester) => Promise<T>,
): Promise<T> {
  // Only settled promises can be closed.
  const opened = await Promise.allSettled([sides.source(), sides.destination()]);
  try {
    const [source, destination] = opened.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
    return await work(source!, destination!);
  } finally {
    await Promise.all(opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value.close()] : [])));
  }
}

/** Within one dialect, values are compared as they are stored or shown; across dialects, by canonical texts. */
export function planOf(source: Digester, destination: Digester): DigestPlan {
  const isShared = source.dialect !== null && source.dialect === destination.dialect;
  const forms = source.types.map((ours, index): DigestForm => {
    const theirs = destination.types[index]!;
    if (isShared) return ours.native !== null && ours.native === theirs.native ? 'native' : 'text';
    return ours.canonical && theirs.canonical ? 'canonical' : 'none';
  });
  return { hash: isShared ? 'native' : 'md5', forms };
}

async function compareOnce(source: Digester, destination: Digester, refuse: Comparing['refuse']) {
  const plan = planOf(source, destination);
  refuse(plan);
  const bounds = await source.bounds(plan, RANGE_ROWS);
  const [ours, theirs] = await Promise.all([source.ranges(plan, bounds), destination.ranges(plan, bounds)]);
  const unequal = ours.flatMap((range, index) => (isSame(range, theirs[index]!) ? [] : [index]));
  const pairs: Pair[] = [];
  let looked_at = 0;
  const at_once = RANGES_AT_ONCE[source.dialect && destination.dialect ? 'query' : 'read'];
  // Rows whose key is null count in a range, and no condition on the key finds them.
  let has_unlocated = false;
  while (looked_at < unequal.length && pairs.length < MAX_DIFFERENCES) {
    const ranges = unequal.slice(looked_at, looked_at + at_once);
    const rows = [source, destination].map((side) => side.rows(plan, bounds, ranges));
    const [left, right] = await Promise.all(rows);
    const located = unequalPairs(left!, right!);
    has_unlocated ||= located.length === 0;
    pairs.push(...located);
    looked_at += ranges.length;
    limitMemoryGrowth((left!.length + right!.length) * ROW_BYTES);
  }
  const found = {
    source_rows: total(ours),
    destination_rows: total(theirs),
    ranges: ours.length,
    ranges_different: unequal.length,
    is_partial: has_unlocated || looked_at < unequal.length || pairs.length > MAX_DIFFERENCES,
    forms: plan.forms,
    source_at: source.at,
    destination_at: destination.at,
  };
  return { found, plan, pairs: pairs.slice(0, MAX_DIFFERENCES) };
}

const isSame = (a: RowsDigest | null, b: RowsDigest | null) =>
  a !== null && b !== null ? a.count === b.count && a.sum === b.sum : a === b;

const total = (ranges: readonly RowsDigest[]) => ranges.reduce((sum, { count }) => sum + count, 0);

function unequalPairs(source: readonly KeyDigest[], destination: readonly KeyDigest[]): Pair[] {
  const others = new Map(destination.map((row) => [JSON.stringify(row.key), row]));
  const pairs: Pair[] = [];
  for (const row of source) {
    const id = JSON.stringify(row.key);
    const other = others.get(id) ?? null;
    others.delete(id);
    if (!isSame(row, other)) pairs.push({ key: row.key, source: row, destination: other });
  }
  for (const row of others.values()) pairs.push({ key: row.key, source: null, destination: row });
  return pairs;
}

function differenceOf({ key, source, destination }: Pair, changed_since: boolean | null): Difference {
  const [ours, theirs] = [source?.count ?? 0, destination?.count ?? 0];
  const kind = theirs === 0 ? 'missing' : ours === 0 ? 'extra' : 'different';
  return { kind, key, changed_since };
}

interface Recheck extends Pick<Comparing, 'since' | 'is_live'> {
  pairs: Pair[];
  plan: DigestPlan;
  signal: AbortSignal;
}

/**
 * Looks at the keys again that differed: both sides were seen at two moments, so rows that were on their way differ for a
 * while. A row that is the same in two looks is a difference; one that still changes after the last has changed since.
 * While a run applies changes, the two looks are the last ones, unless the row is older than what is loaded.
 */
async function recheck(sides: ComparedSides, { pairs, plan, since, is_live, signal }: Recheck): Promise<Difference[]> {
  const settled: Difference[] = [];
  let open = pairs;
  for (let round = 1; round <= ROUNDS && open.length > 0; round += 1) {
    if (round > 1) await sleep(PAUSE_MS, undefined, { signal });
    const keys = open.map(({ key }) => key);
    const now = await openBoth(sides, (source, destination) =>
      Promise.all([source.find(plan, keys, since), destination.find(plan, keys, since)]),
    );
    const before = new Map(open.map((pair) => [JSON.stringify(pair.key), pair]));
    open = [];
    for (const pair of unequalPairs(...now)) {
      const earlier = before.get(JSON.stringify(pair.key));
      const isStill = earlier && isSame(earlier.source, pair.source) && isSame(earlier.destination, pair.destination);
      const isLast = !is_live || round === ROUNDS || pair.source?.changed === false;
      if (isStill && isLast) settled.push(differenceOf(pair, pair.source?.changed ?? null));
      else open.push(pair);
    }
  }
  return [...settled, ...open.map((pair) => differenceOf(pair, true))];
}
