/**
 * More connections join when this share of an interval was spent waiting for those there are. A server that sends rows may
 * need the processors meanwhile; a process that computes them leaves one idle while it waits. `more`: how many join for
 * each of those. One at a time is too slow for short loads: before the second writer, what is on the way to the first has
 * to arrive, and megabytes are.
 */
export const WAITING = { share: 0.75, computed_share: 0.35, of_ms: 200, more: 3 };
