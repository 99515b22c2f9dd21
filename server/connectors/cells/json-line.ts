import { type ParseError, parse } from 'jsonc-parser';

/** Where a JSON text stops being JSON, from 0: JSON.parse of this engine does not say it. */
export function jsonErrorAt(text: string): number {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  return errors[0]?.offset ?? text.length;
}

/** A number that a double may not hold, where a value can stand: 16 places or an exponent of three. */
const RISKY_NUMBER = /(?:^|[[:,])\s*-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d{3})/;
const PLACES = 16;

const isPlace = (text: string, at: number) => {
  const code = text.charCodeAt(at);
  return (code >= 48 && code <= 57) || code === 46;
};

/** Whether digits and points stand in a row as long as that. A look at every 16th character finds every such row. */
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

/** Whether there is an exponent of three digits. A look at every third character finds every row of so many. */
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

/** The two quick looks rule out nearly all texts, at a fraction of the price of the exact one. */
const isRisky = (text: string) => (hasLongNumber(text) || hasLargeExponent(text)) && RISKY_NUMBER.test(text);

// The proposal "JSON.parse source text access": the engine has it, the types do not know it yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is { rawJSON: string };
};
/** What a double gives back as it was; so a number reads the same whatever stands beside it. */
const SAFE_NUMBER = /^-?[\d.]{1,15}(?:[eE][+-]?\d{1,2})?$/;
const keepNumber = (_key: string, value: unknown, context?: { source?: string }) =>
  typeof value === 'number' &&
  context?.source !== undefined &&
  !SAFE_NUMBER.test(context.source) &&
  String(value) !== context.source
    ? rawJSON(context.source)
    : value;

/** JSON.parse that loses no digit: a number that a double would change comes as raw JSON (`rawNumber`). */
export const parseExactly = (text: string): unknown =>
  isRisky(text) ? JSON.parse(text, keepNumber) : JSON.parse(text);

/** The text of a number that `parseExactly` kept, or null. */
export const rawNumber = (value: unknown): string | null => (isRawJSON(value) ? value.rawJSON : null);
