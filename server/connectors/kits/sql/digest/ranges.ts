import type { RowKey } from '../../../contract/digest.ts';

/** SQL that is true for rows whose key sorts before these values. */
export type IsBelow = (bound: RowKey) => string;

/**
 * The number of the range that a row is in, as a tree of comparisons: a dozen of them for thousands of ranges, in any
 * dialect, and in whatever order the rows come.
 */
export function rangeOf(bounds: readonly RowKey[], isBelow: IsBelow): string {
  const branch = (from: number, to: number): string => {
    if (from === to) return String(from);
    const middle = (from + to) >> 1;
    return `case when ${isBelow(bounds[middle]!)} then ${branch(from, middle)} else ${branch(middle + 1, to)} end`;
  };
  return branch(0, bounds.length);
}

/** The condition that a row is in one of the ranges. Neighbours become one condition. */
export function inRanges(bounds: readonly RowKey[], ranges: readonly number[], isBelow: IsBelow): string {
  const spans: { from: number; to: number }[] = [];
  for (const range of ranges.toSorted((a, b) => a - b)) {
    const last = spans.at(-1);
    if (last && last.to === range) last.to = range + 1;
    else spans.push({ from: range, to: range + 1 });
  }
  const conditions = spans.map(({ from, to }) => {
    const parts = [
      ...(from > 0 ? [`not ${isBelow(bounds[from - 1]!)}`] : []),
      ...(to <= bounds.length ? [isBelow(bounds[to - 1]!)] : []),
    ];
    return parts.length === 0 ? '(1 = 1)' : `(${parts.join(' and ')})`;
  });
  return `(${conditions.join(' or ')})`;
}
