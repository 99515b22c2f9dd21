import { type ParseError, parse } from 'jsonc-parser';

/** Offset of the first syntax error in a JSON text, which JSON.parse of this engine does not report. */
export function jsonErrorAt(text: string): number {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  return errors[0]?.offset ?? text.length;
}

/** A number that a double may not represent: 16 digits or an exponent of three digits. */
const RISKY_NUMBER = /^-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d{3})/;
/** The shortest one is `1e100`. */
const MIN_LENGTH = 5;
const MAX_SAFE_LENGTH = 15;

/** The characters of numbers, by code. */
const IN_NUMBERS = new Uint8Array(128);
for (const character of '0123456789.+-eE') IN_NUMBERS[character.charCodeAt(0)] = 1;
/** Set in the codes of letters only. */
const LETTER = 0x40;

/**
 * Whether the text may have a number that a double does not represent. Checking every fifth character finds all of them,
 * in half the time of a regular expression for the whole text.
 */
function isRisky(text: string): boolean {
  for (let at = MIN_LENGTH - 1; at < text.length; at += MIN_LENGTH) {
    if (IN_NUMBERS[text.charCodeAt(at)] !== 1) continue;
    let letters = 0;
    let from = at;
    for (; IN_NUMBERS[text.charCodeAt(from - 1)] === 1; from -= 1) letters |= text.charCodeAt(from - 1);
    for (; IN_NUMBERS[text.charCodeAt(at)] === 1; at += 1) letters |= text.charCodeAt(at);
    const isSafe = (letters & LETTER) === 0 && at - from <= MAX_SAFE_LENGTH;
    if (!isSafe && RISKY_NUMBER.test(text.slice(from, at)) && isValueAt(text, from)) return true;
  }
  return false;
}

/** Whether a value begins at this position, except in a string. */
function isValueAt(text: string, from: number): boolean {
  let before = from - 1;
  while (/\s/.test(text.charAt(before))) before -= 1;
  return before < 0 || '[:,'.includes(text.charAt(before));
}

// The proposal "JSON.parse source text access" is implemented by the engine, but missing in the types.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is { rawJSON: string };
};
/** Numbers that a double always represents. Checked so that a number reads the same whatever else is in the text. */
const SAFE_NUMBER = /^-?[\d.]{1,15}(?:[eE][+-]?\d{1,2})?$/;
const keepNumber = (_key: string, value: unknown, context?: { source?: string }) =>
  typeof value === 'number' &&
  context?.source !== undefined &&
  !SAFE_NUMBER.test(context.source) &&
  String(value) !== context.source
    ? rawJSON(context.source)
    : value;

/** JSON.parse without loss of digits: a number that a double would change is kept as raw JSON (`rawNumber`). */
export const parseExactly = (text: string): unknown =>
  isRisky(text) ? JSON.parse(text, keepNumber) : JSON.parse(text);

/** The text of a number that `parseExactly` kept as raw JSON; null for any other value. */
export const rawNumber = (value: unknown): string | null => (isRawJSON(value) ? value.rawJSON : null);
