import { RequestShapeError } from '../platform/errors.ts';

/** Strings, which are skipped, and numbers of a valid JSON text. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
/** Every number up to this length identifies its double. */
const ALWAYS_EXACT = 15;

/**
 * Refuses JSON numbers that JSON.parse would round, such as 9007199254740993. Decimal places written by %.17g are
 * accepted: they name the double that a client had.
 * @throws RequestShapeError with the position and the number.
 */
export function refuseRoundedNumbers(text: string): void {
  if (!/\d[\d.]{15}/.test(text)) return;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (token.length <= ALWAYS_EXACT || token.startsWith('"') || isExact(token)) continue;
    const shown = token.length > 50 ? `${token.slice(0, 50)}…` : token;
    const msg = `The number ${shown} has more digits than JSON numbers keep. Send it as text`;
    throw new RequestShapeError([{ loc: ['body', index], msg, type: 'number_not_exact' }]);
  }
}

function isExact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return false;
  const written = decimal(token);
  return written === decimal(String(value)) || (token.includes('.') && written === decimal(value.toPrecision(17)));
}

/** Sign, digits without zeros at either end, and the power of ten: equal for equal numbers. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = withoutZerosAtEnd(digits);
  if (significant === '') return '0';
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** Not by /0+$/, which takes quadratic time. */
function withoutZerosAtEnd(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
