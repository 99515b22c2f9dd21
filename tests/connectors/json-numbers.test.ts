import { expect, test } from 'bun:test';
import { parseExactly } from '../../server/connectors/cells/json-line.ts';
import { digitsOf } from '../../server/connectors/cells/json-cells.ts';

const digit = () => String(Math.floor(Math.random() * 10));
const digits = (count: number) => Array.from({ length: count }, digit).join('');
const sign = (...signs: string[]) => signs[Math.floor(Math.random() * signs.length)] ?? '';
const size = (most: number) => 1 + Math.floor(Math.random() * most);

/** A random JSON number, often longer or larger than a double. */
function anyNumber(): string {
  const whole = Math.random() < 0.3 ? '0' : `${1 + Math.floor(Math.random() * 9)}${digits(size(22) - 1)}`;
  const fraction = Math.random() < 0.5 ? `.${digits(size(20))}` : '';
  const exponent = Math.random() < 0.4 ? `${sign('e', 'E')}${sign('', '+', '-')}${digits(size(4))}` : '';
  return `${sign('', '-')}${whole}${fraction}${exponent}`;
}
/** Text between numbers: digits in strings, words that end in e, hyphens. */
const between = () =>
  sign('"note1e5-x"', '"2026-01-31T23:59:59"', '"e"', 'true', '{"line": 12}', '"1234567890123456789"', '[]');

test('a number that a double would change keeps its digits, whatever surrounds it', () => {
  for (let turn = 0; turn < 20_000; turn++) {
    const numbers = Array.from({ length: size(4) }, anyNumber);
    const text = `[${numbers.flatMap((one) => [between(), one]).join(sign(',', ', '))}]`;
    const parsed = (parseExactly(text) as unknown[]).filter((_, at) => at % 2 === 1);
    for (const [at, one] of numbers.entries()) {
      const found = digitsOf(parsed[at]);
      // Either the double is exact, or all digits are kept.
      const isSame = found !== null && Number(found) === Number(one) && Number.isFinite(Number(one));
      const isExact =
        found === one || (isSame && one.replace(/^-|[.]|e.*$/gi, '').replace(/^0+|0+$/g, '').length <= 15);
      if (!isExact) expect({ text, one, found }).toBe(null as never);
    }
  }
});

test('the time for long runs of digits is linear', () => {
  const begun = performance.now();
  parseExactly(JSON.stringify({ text: '7'.repeat(4_000_000), more: 'e12'.repeat(1_000_000) }));
  expect(performance.now() - begun).toBeLessThan(5_000);
});
