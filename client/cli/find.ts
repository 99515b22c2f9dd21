import { Refused, UsageError } from './exit.ts';

interface Named {
  id: string;
  name: string;
}

/**
 * The one that an argument means: its id, its name (upper and lower case alike), or the only one whose name or id
 * begins so.
 * @throws Refused (exit code 4) for none, UsageError for several.
 */
export function pick<Thing extends Named>(things: Thing[], wanted: string, what: string): Thing {
  const lower = wanted.toLowerCase();
  const exact = things.find(({ id }) => id === lower) ?? things.find(({ name }) => name.toLowerCase() === lower);
  if (exact) return exact;
  const begun = things.filter(({ id, name }) => name.toLowerCase().startsWith(lower) || id.startsWith(lower));
  if (begun.length === 1) return begun[0]!;
  if (begun.length === 0) throw new Refused('not_found', `There is no ${what} "${wanted}"`);
  const names = begun.slice(0, 5).map(({ name }) => `"${name}"`);
  throw new UsageError(`"${wanted}" could be ${names.join(', ')}${begun.length > 5 ? ' and others' : ''}`);
}
