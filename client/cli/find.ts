import { CommandError, UsageError } from './exit.ts';

interface Named {
  id: string;
  name: string;
}

/**
 * Finds the item that an argument names: by id, by name (case-insensitive), or by a unique prefix of either.
 * @throws CommandError (exit code 4) if there is none, UsageError if the argument is empty or ambiguous.
 */
export function pick<Thing extends Named>(things: Thing[], wanted: string, what: string): Thing {
  const exact = findExact(things, wanted, what);
  if (exact) return exact;
  const matches = startingWith(things, wanted);
  if (matches.length === 1) return matches[0]!;
  if (matches.length === 0) throw new CommandError('not_found', `No ${what} matches "${wanted}"`);
  throw new UsageError(`"${wanted}" is ambiguous: it matches ${quoted(matches)}`);
}

/**
 * Finds the item to delete, disable or revoke, which takes its whole name or id: a prefix may match another item than
 * the one meant, and a variable that is empty must match none.
 * @throws CommandError (exit code 4) if there is none, UsageError if the argument is empty.
 */
export function pickWhole<Thing extends Named>(things: Thing[], wanted: string, what: string): Thing {
  const exact = findExact(things, wanted, what);
  if (exact) return exact;
  const similar = startingWith(things, wanted);
  const hint = similar.length > 0 ? `. Pass the whole name: ${quoted(similar)}` : '';
  throw new CommandError('not_found', `No ${what} is named "${wanted}"${hint}`);
}

function findExact<Thing extends Named>(things: Thing[], wanted: string, what: string): Thing | undefined {
  const lower = wanted.trim().toLowerCase();
  if (lower === '') throw new UsageError(`The ${what} is empty: pass a name or an id`);
  return things.find(({ id }) => id === lower) ?? things.find(({ name }) => name.toLowerCase() === lower);
}

function startingWith<Thing extends Named>(things: Thing[], wanted: string): Thing[] {
  const lower = wanted.trim().toLowerCase();
  return things.filter(({ id, name }) => name.toLowerCase().startsWith(lower) || id.startsWith(lower));
}

const quoted = (things: Named[]): string =>
  things
    .slice(0, 5)
    .map(({ name }) => `"${name}"`)
    .join(', ') + (things.length > 5 ? ' and others' : '');
