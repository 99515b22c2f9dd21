/** Where a JSON text stops being JSON: JSON.parse of this engine does not say it. From 0; the length if it breaks off. */
export function jsonErrorAt(text: string): number {
  const token = /[ \t\r\n]*(?:([{}[\],:])|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
  const open: string[] = [];
  let expect: 'value' | 'first' | 'key' | 'colon' | 'next' | 'end' = 'value';
  while (true) {
    const space = /[ \t\r\n]*/y;
    space.lastIndex = token.lastIndex;
    space.exec(text);
    const at = space.lastIndex;
    const match = token.exec(text);
    if (!match) return at;
    const mark = match[1];
    const inObject = open.at(-1) === '{';
    if (expect === 'end') return at;
    if (mark === '{' || mark === '[') {
      if (expect !== 'value' && !(expect === 'first' && !inObject)) return at;
      open.push(mark);
      expect = 'first';
    } else if (mark === '}' || mark === ']') {
      if ((expect !== 'first' && expect !== 'next') || (mark === '}') !== inObject || open.length === 0) return at;
      open.pop();
      expect = open.length === 0 ? 'end' : 'next';
    } else if (mark === ',') {
      if (expect !== 'next') return at;
      expect = inObject ? 'key' : 'value';
    } else if (mark === ':') {
      if (expect !== 'colon') return at;
      expect = 'value';
    } else if (expect === 'key' || (expect === 'first' && inObject)) {
      if (text[at] !== '"') return at;
      expect = 'colon';
    } else {
      if (expect !== 'value' && expect !== 'first') return at;
      expect = open.length === 0 ? 'end' : 'next';
    }
  }
}

/** Numbers that a double may not hold: long runs of digits, exponents. In a string they only cost time. */
const RISKY_NUMBER = /[\d.]{16}|\d[eE][+-]?\d/;

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
  RISKY_NUMBER.test(text) ? JSON.parse(text, keepNumber as (key: string, value: unknown) => unknown) : JSON.parse(text);

/** The text of a number that `parseExactly` kept, or null. */
export const rawNumber = (value: unknown): string | null => (isRawJSON(value) ? value.rawJSON : null);
