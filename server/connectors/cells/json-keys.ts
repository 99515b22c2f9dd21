import { type Node, parseTree } from 'jsonc-parser';

/** A name that the count of `":` misses. */
const SPACED_NAME = /"\s+:/;
const [SPACE, BACKSLASH, COLON] = [0x20, 0x5c, 0x3a];

/**
 * A key that an object in a JSON text has twice: JSON.parse keeps only its last value. Null: there is none. `value` is
 * what JSON.parse made of the text. Costs a count of names as serializers write them; only other texts are looked at closer.
 */
export function repeatedKey(text: string, value: object): string | null {
  const keys = countKeys(value);
  if (text.split('":').length - 1 === keys && !SPACED_NAME.test(text)) return null;
  if (countNames(text) === keys) return null;
  const tree = parseTree(text);
  return tree ? repeatedIn(tree) : null;
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null || JSON_RAW(value)) return 0;
  let keys = 0;
  if (Array.isArray(value)) for (const item of value) keys += countKeys(item);
  else for (const name in value) keys += 1 + countKeys((value as Record<string, unknown>)[name]);
  return keys;
}

/** Numbers of many digits are objects (json-line.ts). */
const { isRawJSON: JSON_RAW } = JSON as unknown as { isRawJSON(value: unknown): boolean };

/** Texts that a colon follows. */
function countNames(text: string): number {
  let names = 0;
  for (let at = text.indexOf('"'); at >= 0; ) {
    let next = closingQuote(text, at) + 1;
    while (text.charCodeAt(next) <= SPACE) next += 1;
    if (text.charCodeAt(next) === COLON) names += 1;
    at = text.indexOf('"', next);
  }
  return names;
}

function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    if (text.charCodeAt(at - 1) !== BACKSLASH) return at;
    let slashes = 1;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
}

function repeatedIn({ type, children = [] }: Node): string | null {
  const seen = new Set<string>();
  for (const child of children) {
    const [key, value] = child.children ?? [];
    const name = type === 'object' ? String(key?.value) : null;
    if (name !== null && seen.has(name)) return name;
    if (name !== null) seen.add(name);
    const inner = type === 'object' ? value : child;
    const found = inner && repeatedIn(inner);
    if (found != null) return found;
  }
  return null;
}
