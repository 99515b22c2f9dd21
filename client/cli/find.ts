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
  if (matches.length === 0)
    throw new CommandError('not_found', `No ${what} matches "${wanted}"${proposal(things, wanted)}`);
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
  const hint = similar.length > 0 ? `. Pass the whole name: ${quoted(similar)}` : proposal(things, wanted);
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

const SHARED_LETTERS = 3;

/** Names that the caller may have meant: those that contain the text, or begin alike. */
function proposal(things: Named[], wanted: string): string {
  if (things.length === 0) return ': the account has none';
  const lower = wanted.trim().toLowerCase();
  const start = lower.length >= SHARED_LETTERS ? lower.slice(0, SHARED_LETTERS) : lower;
  const similar = things.filter(({ name }) => {
    const own = name.toLowerCase();
    return own.includes(lower) || own.startsWith(start);
  });
  return similar.length === 0 ? '' : `. Did you mean ${quoted(similar)}?`;
}

const quoted = (things: Named[]): string =>
  things
    .slice(0, 5)
    .map(({ name }) => `"${name}"`)
    .join(', ') + (things.length > 5 ? ' and others' : '');
