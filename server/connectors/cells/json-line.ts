import { type ParseError, parse } from 'jsonc-parser';

/** Offset of the first syntax error in a JSON text, which JSON.parse of this engine does not report. */
export function jsonErrorAt(text: string): number {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  return errors[0]?.offset ?? text.length;
}

/** A number that a double may not represent, at the position of a value: 16 digits or an exponent of three digits. */
const RISKY_NUMBER = /(?:^|[[:,])\s*-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d{3})/;
const PLACES = 16;

const isPlace = (text: string, at: number) => {
  const code = text.charCodeAt(at);
  return (code >= 48 && code <= 57) || code === 46;
};

/** Whether the text has 16 digits and points in a row. Checking every 16th character finds every such run. */
function hasLongNumber(text: string): boolean {
  for (let at = PLACES - 1; at < text.length; at += PLACES) {
    if (!isPlace(text, at)) continue;
    let from = at;
    let to = at + 1;
    while (from > 0 && isPlace(text, from - 1)) from -= 1;
    while (to < text.length && isPlace(text, to)) to += 1;
    if (to - from >= PLACES) return true;
  }
  return false;
}

const isDigit = (code: number) => code >= 48 && code <= 57;

/** Whether the text has an exponent of three digits. Checking every third character finds every such run. */
function hasLargeExponent(text: string): boolean {
  for (let at = 2; at < text.length; at += 3) {
    if (!isDigit(text.charCodeAt(at))) continue;
    let from = at;
    while (isDigit(text.charCodeAt(from - 1))) from -= 1;
    while (isDigit(text.charCodeAt(at + 1))) at += 1;
    if (at - from < 2) continue;
    const before = text.charCodeAt(from - 1);
    const isSign = before === 43 || before === 45;
    const letter = isSign ? text.charCodeAt(from - 2) : before;
    if (letter === 69 || letter === 101) return true;
  }
  return false;
}

/** The two quick checks rule out nearly all texts, at a fraction of the cost of the exact one. */
const isRisky = (text: string) => (hasLongNumber(text) || hasLargeExponent(text)) && RISKY_NUMBER.test(text);

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
