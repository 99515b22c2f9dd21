import { LRUCache } from 'lru-cache';
import type { RE2JS } from 're2js';
import type * as patterns from './checked-pattern.ts';

export const MAX_PATTERN_LENGTH = 256;
const MAX_SUBJECT = 4096;
/**
 * Budget of one evaluation, in instructions times characters. The slowest pattern measured processed 6.5 million per
 * second, so the budget takes 5 ms at worst; a typical pattern is a hundred times faster.
 */
const MAX_WORK = 32_768;
const MAX_MS = 5;

const compiled = new LRUCache<string, RE2JS>({ max: 2000 });
let work = 0;
let started = 0;

/** Compiles a pattern, or returns the cached form. Matching takes time linear in the text. @throws Error for the user */
export function compilePattern(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known) return known;
  // Loaded with its first use: most rules have no patterns.
  const { checkedPattern } = require('./checked-pattern.ts') as typeof patterns;
  const regex = checkedPattern(pattern);
  compiled.set(pattern, regex);
  return regex;
}

/** Called before each evaluation: each has its own budget. */
export function resetWork(): void {
  work = 0;
  started = performance.now();
}

/** Searches the first 4,096 characters of the text, fewer for a large pattern. @throws Error when the budget is spent */
export function regexMatches(subject: string, pattern: string): boolean {
  const regex = compilePattern(pattern);
  const size = regex.programSize();
  const text = subject.slice(0, Math.min(MAX_SUBJECT, Math.floor(MAX_WORK / size)));
  // Both limits: time alone would fail small rules on a busy machine, work alone would fail fast large ones.
  if (work > MAX_WORK && performance.now() - started > MAX_MS)
    throw new Error('The regular expressions of this rule take too long');
  work += text.length * size;
  return regex.test(text);
}
