import { rawNumber } from '../../cells/json-line.ts';
import { TemplateError } from './template-error.ts';

/*
 * Python's numbers. A whole number of JavaScript is an int and any other number a float. A float with a whole value is kept
 * as its digits, `2.0`, as are ints that a double cannot represent: both are JSON numbers, and texts show them as they are.
 */

const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };

/** A float as a value of templates. */
export const pyFloat = (number: number): unknown => (Number.isInteger(number) ? rawJSON(floatText(number)) : number);

export function isFloat(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isInteger(value);
  const digits = rawNumber(value);
  return digits !== null && /[.eE]/.test(digits);
}

/** An int with all its digits. */
export function pyInt(digits: bigint): unknown {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : rawJSON(String(digits));
}

/** Python's `repr` of a float: the shortest digits, with an exponent below 0.0001 and from 10^16. */
export function floatText(number: number): string {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf';
  const sign = number < 0 || Object.is(number, -0) ? '-' : '';
  const [mantissa = '', power = ''] = Math.abs(number).toExponential().split('e');
  const exponent = Number(power);
  const digits = mantissa.replace('.', '');
  if (exponent >= 16 || exponent < -4) {
    const size = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

interface Operands {
  x: number;
  y: number;
  /** Whether one of them is a float, so that the result is one. */
  float: boolean;
}

const ARITHMETIC: Record<string, (operands: Operands) => number> = {
  '+': ({ x, y }) => x + y,
  '-': ({ x, y }) => x - y,
  '*': ({ x, y }) => x * y,
  '/': ({ x, y }) => x / y,
  '//': ({ x, y }) => floorDivided(x, y),
  '%': ({ x, y }) => modulo(x, y),
  '**': ({ x, y }) => x ** y,
};

/** Calculates as Python does. @throws TemplateError for a division by zero, or where digits would be lost */
export function calculate(name: string, operands: Operands): unknown {
  const { x, y } = operands;
  if (y === 0 && ['/', '//', '%'].includes(name)) throw new TemplateError('division by zero');
  if (name === '**' && ((x === 0 && y < 0) || (x < 0 && !Number.isInteger(y))))
    throw new TemplateError('the power does not exist');
  const result = ARITHMETIC[name]!(operands);
  if (operands.float || name === '/' || (name === '**' && y < 0)) return pyFloat(result);
  if ([x, y, result].every(Number.isSafeInteger)) return result + 0;
  throw new TemplateError(`the integers of ${name} have too many digits`);
}

/** The remainder with the sign of the divisor. */
function modulo(x: number, y: number): number {
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return rest < 0 === y < 0 ? rest : rest + y;
}

function floorDivided(x: number, y: number): number {
  const exact = (x - modulo(x, y)) / y;
  const whole = Math.floor(exact);
  if (whole === 0 && exact === 0) return Object.is(x / y, -0) || x / y < 0 ? -0 : 0;
  return exact - whole > 0.5 ? whole + 1 : whole;
}

const MAX_PRECISION = 320;

/** Rounds to a number of decimals, a half to the even digit, by the exact value of the double. */
export function roundHalfEven(number: number, decimals: number): number {
  if (!Number.isFinite(number) || decimals > MAX_PRECISION) return number;
  if (decimals < -MAX_PRECISION) return number < 0 ? -0 : 0;
  const { numerator, denominator } = fractionOf(Math.abs(number));
  const over = numerator * 10n ** BigInt(Math.max(decimals, 0));
  const under = denominator * 10n ** BigInt(Math.max(-decimals, 0));
  const whole = over / under;
  const twice = 2n * (over % under);
  const isUp = twice > under || (twice === under && whole % 2n === 1n);
  const rounded = Number(`${whole + (isUp ? 1n : 0n)}e${-decimals}`);
  return number < 0 ? -rounded : rounded;
}

/** The exact value of a double. */
function fractionOf(number: number): { numerator: bigint; denominator: bigint } {
  let denominator = 1n;
  let scaled = number;
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    denominator *= 2n;
  }
  return { numerator: BigInt(scaled), denominator };
}
