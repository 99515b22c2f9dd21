import { type ParseError, parse } from 'jsonc-parser';

/** Where a JSON text stops being JSON, from 0: JSON.parse of this engine does not say it. */
export function jsonErrorAt(text: string): number {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  return errors[0]?.offset ?? text.length;
}

/** Numbers that a double may not hold: long runs of digits, exponents, where a value can stand. In a string they only cost time. */
const RISKY_NUMBER = /(?:^|[[:,])\s*-?\d(?:[\d.]{15}|[\d.]*[eE])/;

// The proposal "JSON.parse source text access": the engine has it, the types do not know it yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is { rawJSON: string };
};
const keepNumber = (_key: string, value: unknown, context?: { source?: string }) =>
  typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
    ? rawJSON(context.source)
    : value;

/** JSON.parse that loses no digit: a number that a double would change comes as raw JSON (`rawNumber`). */
export const parseExactly = (text: string): unknown =>
  RISKY_NUMBER.test(text) ? JSON.parse(text, keepNumber) : JSON.parse(text);

/** The text of a number that `parseExactly` kept, or null. */
export const rawNumber = (value: unknown): string | null => (isRawJSON(value) ? value.rawJSON : null);
