import { CommandError, UsageError } from './exit.ts';

interface Named {
  id: string;
  name: string;
}

/**
 * Finds the item that an argument names: by id, by name (case-insensitive), or by a unique prefix of either.
 * @throws CommandError (exit code 4) if there is none, UsageError if the prefix is ambiguous.
 */
export function pick<Thing extends Named>(things: Thing[], wanted: string, what: string): Thing {
  const lower = wanted.toLowerCase();
  const exact = things.find(({ id }) => id === lower) ?? things.find(({ name }) => name.toLowerCase() === lower);
  if (exact) return exact;
  const matches = things.filter(({ id, name }) => name.toLowerCase().startsWith(lower) || id.startsWith(lower));
  if (matches.length === 1) return matches[0]!;
  if (matches.length === 0) throw new CommandError('not_found', `No ${what} matches "${wanted}"`);
  const names = matches.slice(0, 5).map(({ name }) => `"${name}"`);
  throw new UsageError(
    `"${wanted}" is ambiguous: it matches ${names.join(', ')}${matches.length > 5 ? ' and others' : ''}`,
  );
}
