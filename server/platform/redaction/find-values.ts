/** Shorter values are not searched. */
export const MIN_VALUE_LENGTH = 4;

const BUCKETS = 1 << 16;
/** Each step shifts by 4 of 16 bits, so the bucket depends on the last four UTF-16 code units and on nothing before. */
const nextBucket = (bucket: number, code: number) => ((bucket << 4) ^ code) & (BUCKETS - 1);

/**
 * Replaces every occurrence of `values` in a text, the longest one first, in a single pass. The cost is linear in the
 * text whatever the number of values is: a position is compared with values only when its next four characters start
 * one of them. Searching for each value by itself took 150 passes for ten secrets in all their spellings.
 */
export function valueReplacer(values: readonly string[], replacement: () => string): (text: string) => string {
  const longestFirst = [...new Set(values)]
    .filter((value) => value.length >= MIN_VALUE_LENGTH)
    .toSorted((a, b) => b.length - a.length)
    .map((value) => ({ value, differedAt: -1 }));
  if (longestFirst.length === 0) return (text) => text;
  const byBucket = [...Map.groupBy(longestFirst, ({ value }) => bucketOf(value))];
  /** The first is that of buckets without values. */
  const groups: Candidate[][] = [[], ...byBucket.map(([, candidates]) => candidates)];
  const groupOfBucket = new Uint16Array(BUCKETS);
  for (const [at, [bucket]] of byBucket.entries()) groupOfBucket[bucket] = at + 1;
  return (text) => {
    for (const candidate of longestFirst) candidate.differedAt = -1;
    let output = '';
    let copied = 0;
    let bucket = 0;
    for (let last = 0; last < text.length; last += 1) {
      bucket = nextBucket(bucket, text.charCodeAt(last));
      const group = groupOfBucket[bucket]!;
      const at = last - MIN_VALUE_LENGTH + 1;
      if (group === 0 || at < copied) continue;
      const found = candidateAt(text, at, groups[group]!);
      if (found === undefined) continue;
      output += text.slice(copied, at) + replacement();
      copied = at + found.value.length;
      last = Math.max(last, copied - 1);
    }
    return copied === 0 ? text : output + text.slice(copied);
  };
}

interface Candidate {
  value: string;
  /** Where the text last differed from the value. */
  differedAt: number;
}

function candidateAt(text: string, at: number, candidates: readonly Candidate[]): Candidate | undefined {
  for (const candidate of candidates) if (isAt(text, at, candidate)) return candidate;
  return undefined;
}

/**
 * A text that repeats most of a value would be compared with it at each position. What made the last comparison fail is
 * therefore looked at first: it makes most of the next ones fail, too.
 */
function isAt(text: string, at: number, candidate: Candidate): boolean {
  const { value, differedAt } = candidate;
  if (differedAt >= at && text.charCodeAt(differedAt) !== value.charCodeAt(differedAt - at)) return false;
  for (let offset = 0; offset < value.length; offset += 1) {
    if (text.charCodeAt(at + offset) === value.charCodeAt(offset)) continue;
    candidate.differedAt = at + offset;
    return false;
  }
  return true;
}

function bucketOf(value: string): number {
  let bucket = 0;
  for (let at = 0; at < MIN_VALUE_LENGTH; at += 1) bucket = nextBucket(bucket, value.charCodeAt(at));
  return bucket;
}
