/** A finite number: `digits` × 10^`exponent`, without zeros at either end. Zero has no digits. */
interface Decimal {
  negative: boolean;
  digits: string;
  exponent: number;
}

const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?$/;
const ZERO = 48;

/** Null for a text that is not a finite number. */
export function parseDecimal(text: string): Decimal | null {
  const [, sign, whole = '', fraction = '', exponent = '0'] = FORM.exec(text) ?? [];
  if (sign === undefined || (whole === '' && fraction === '')) return null;
  const all = whole + fraction;
  let [from, to] = [0, all.length];
  while (from < to && all.charCodeAt(from) === ZERO) from += 1;
  while (to > from && all.charCodeAt(to - 1) === ZERO) to -= 1;
  const shift = Number(exponent) - fraction.length + all.length - to;
  return from === to
    ? { negative: false, digits: '', exponent: 0 }
    : { negative: sign === '-', digits: all.slice(from, to), exponent: shift };
}

const equal = (a: Decimal, b: Decimal) =>
  a.negative === b.negative && a.digits === b.digits && a.exponent === b.exponent;

/** Plain digits, without an exponent. */
function plainText({ negative, digits, exponent }: Decimal): string {
  if (digits === '') return '0';
  const sign = negative ? '-' : '';
  if (exponent >= 0) return `${sign}${digits}${'0'.repeat(exponent)}`;
  const padded = digits.padStart(1 - exponent, '0');
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`;
}

/** Whether the number has at most so many digits behind the point. True for what is not a finite number. */
export function hasScale(text: string, scale: number): boolean {
  const point = text.indexOf('.');
  if (point < 0 && !/[eE]/.test(text)) return true;
  if (point >= 0 && text.length - point - 1 <= scale && !/[eE]/.test(text)) return true;
  const decimal = parseDecimal(text);
  return decimal === null || decimal.digits === '' || -decimal.exponent <= scale;
}

/** The nearest number with so many digits behind the point; halves are rounded away from zero, as PostgreSQL does. */
export function roundToScale(text: string, scale: number): string | undefined {
  const decimal = parseDecimal(text);
  if (decimal === null) return undefined;
  const drop = -decimal.exponent - scale;
  if (decimal.digits === '' || drop <= 0) return plainText(decimal);
  const kept = decimal.digits.slice(0, Math.max(0, decimal.digits.length - drop));
  const next = decimal.digits.length >= drop ? decimal.digits.charCodeAt(kept.length) - ZERO : 0;
  const rounded = (BigInt(kept || '0') + (next >= 5 ? 1n : 0n)).toString();
  return plainText(parseDecimal(`${decimal.negative ? '-' : ''}${rounded}e${-scale}`)!);
}

/** The text with the fewest digits that a binary fraction of the size reads as this number. */
function shortest(value: number, size: 'single' | 'double'): string {
  if (size === 'double') return String(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return text;
  }
  return value.toPrecision(9);
}

/** The nearest binary fraction, as text; undefined if it is beyond the largest one or the text is not a number. */
export function nearestFloat(text: string, size: 'single' | 'double'): string | undefined {
  const decimal = parseDecimal(text);
  if (decimal === null) return undefined;
  const double = Number(text);
  const value = size === 'single' ? Math.fround(double) : double;
  if (!Number.isFinite(value) || (value === 0 && decimal.digits !== '')) return undefined;
  return shortest(value, size);
}

/** Whether a binary fraction keeps all digits of the number: its own shortest text is an equal number. */
export function isFloat(text: string, size: 'single' | 'double'): boolean {
  if (text.length <= (size === 'single' ? 7 : 16) && !/[eE]/.test(text)) {
    // Six digits always fit a single, fifteen a double; the sign or the point is one character more.
    if (text.length <= (size === 'single' ? 6 : 15) || /[-.]/.test(text)) return true;
  }
  // Most doubles arrive as their shortest text. The steps below take four times as long.
  if (size === 'double' && String(Number(text)) === text) return true;
  const decimal = parseDecimal(text);
  if (decimal === null) return true;
  const nearest = nearestFloat(text, size);
  const read = nearest === undefined ? null : parseDecimal(nearest);
  return read !== null && equal(decimal, read);
}

/** Canonical digits of a text that is a number: `+.5` is `0.5`, `007.` is `7`. Undefined for any other text. */
export function numberText(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed === 'NaN' || trimmed === 'Infinity' || trimmed === '-Infinity') return trimmed;
  const [, sign, whole = '', fraction = '', exponent = ''] =
    /^([+-]?)(\d*)\.?(\d*)((?:[eE][+-]?\d{1,6})?)$/.exec(trimmed) ?? [];
  if (sign === undefined || (whole === '' && fraction === '')) return undefined;
  const digits = `${whole.replace(/^0+/, '') || '0'}${fraction === '' ? '' : `.${fraction}`}${exponent}`;
  return sign === '-' && parseDecimal(digits)?.digits !== '' ? `-${digits}` : digits;
}

/** The digits of a number without a fraction; undefined for any other. */
export function wholeText(text: string): string | undefined {
  const decimal = parseDecimal(text.trim());
  return decimal === null || decimal.exponent < 0 || decimal.exponent > 100 ? undefined : plainText(decimal);
}

/** Without zeros at the end of its fraction. */
export const withoutTrailingZeros = (text: string): string => (text.includes('.') ? text.replace(/\.?0*$/, '') : text);
