/** Another connection joins when this share of an interval was spent waiting for those there are. */
export const WAITING = { share: 0.75, of_ms: 200 };
