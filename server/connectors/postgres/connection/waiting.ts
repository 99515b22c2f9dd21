/**
 * Another connection joins when this share of an interval was spent waiting for those there are. A server that sends rows
 * may need the processors meanwhile; a process that computes them leaves one idle while it waits.
 */
export const WAITING = { share: 0.75, computed_share: 0.35, of_ms: 200 };
