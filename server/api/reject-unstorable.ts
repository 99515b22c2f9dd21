import type { ValidationIssue } from '../platform/errors.ts';
import { isStorable } from '../platform/storable-text.ts';

const MAX_DEPTH = 64;

/**
 * Finds the first problem that no schema checks: NUL characters and lone surrogates (PostgreSQL cannot store them in
 * jsonb, nor NUL in text), the key `__proto__` (copying by assignment would set the prototype), and nesting that would
 * exhaust the stack.
 */
export function refuseUnstorable(value: unknown, loc: (string | number)[]): ValidationIssue | null {
  if (typeof value === 'string')
    return isStorable(value) ? null : issue(loc, 'Text contains NUL or invalid characters');
  if (typeof value !== 'object' || value === null) return null;
  if (loc.length > MAX_DEPTH) return issue(loc.slice(0, 2), 'Nested too deeply');
  if (Array.isArray(value)) return firstOf(value.entries(), loc);
  for (const key of Object.keys(value)) {
    if (key === '__proto__')
      return { loc: [...loc, key], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' };
    if (!isStorable(key)) return issue(loc, 'A key contains NUL or invalid characters');
  }
  return firstOf(Object.entries(value), loc);
}

function firstOf(entries: Iterable<[string | number, unknown]>, loc: (string | number)[]): ValidationIssue | null {
  for (const [key, item] of entries) {
    if (typeof item === 'string' ? isStorable(item) : typeof item !== 'object') continue;
    const found = refuseUnstorable(item, [...loc, key]);
    if (found) return found;
  }
  return null;
}

const issue = (loc: (string | number)[], msg: string): ValidationIssue => ({ loc, msg, type: 'value_error' });
