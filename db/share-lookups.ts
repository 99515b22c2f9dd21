/**
 * Lookups of one key that begin in the same turn of the event loop share a statement. Requests that are handled in one turn
 * have all arrived before the statement is sent, so each sees what was committed before it: nothing is cached.
 */
export function sharedLookups<Found>(find: (key: string) => Promise<Found>): (key: string) => Promise<Found> {
  const begun = new Map<string, Promise<Found>>();
  return (key) => {
    const known = begun.get(key);
    if (known) return known;
    if (begun.size === 0) setImmediate(() => begun.clear());
    const finding = find(key);
    begun.set(key, finding);
    return finding;
  };
}
