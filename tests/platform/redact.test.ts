import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { valueReplacer } from '../../server/platform/redaction/find-values.ts';
import { createRedactor } from '../../server/platform/redaction/redact.ts';
import { HOSTILE_PARTS, SEARCHED_VALUES } from '../support/hostile-texts.ts';

describe('a text of one megabyte crafted to be slow to search', () => {
  // Each takes minutes to years if a failed match makes the search read the same characters again.
  const { text } = createRedactor(SEARCHED_VALUES);
  test.each(HOSTILE_PARTS)('%s', (part) => {
    expect(text(part.repeat(1_000_000 / part.length)).length).toBeGreaterThan(0);
  });
});

describe('a stored secret is found', () => {
  const secret = 'p@ss w0rd/"+x<&\'é';
  const { text } = createRedactor([secret]);
  const form = new URLSearchParams({ secret }).toString().slice('secret='.length);
  test.each([
    ['form-encoded', form],
    ['URL-encoded with lower-case digits', encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase())],
    ['URL-encoded twice', encodeURIComponent(encodeURIComponent(secret))],
    ['in hex', Buffer.from(secret).toString('hex')],
    ['HTML-escaped', Bun.escapeHTML(secret)],
  ])('%s', (_, spelled) => {
    expect(text(`before ${spelled} after`)).toBe('before [redacted] after');
  });

  test.each(['', 'u', 'us', 'user:', 'name@example.com:'])('in Base64 behind %p', (user) => {
    const encoded = Buffer.from(`${user}${secret}`).toString('base64');
    const decoded = Buffer.from(text(encoded).replace('[redacted]', ''), 'base64').toString();
    expect(text(encoded)).toContain('[redacted]');
    expect(decoded).not.toContain(secret.slice(1, -1));
  });
});

test('values are replaced longest first', () => {
  const value = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '\u{1f600}'), minLength: 2, maxLength: 6 });
  const property = fc.property(fc.array(value, { maxLength: 4 }), fc.array(value), (values, parts) => {
    const text = parts.join('');
    const long = values.filter(({ length }) => length >= 4).toSorted((a, b) => b.length - a.length);
    const pattern = long.length > 0 ? new RegExp(long.join('|'), 'g') : /(?!)/g;
    expect(valueReplacer(values, () => '*')(text)).toBe(text.replace(pattern, '*'));
  });
  fc.assert(property, { numRuns: 2000 });
});
