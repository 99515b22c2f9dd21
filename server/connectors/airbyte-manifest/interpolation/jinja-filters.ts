import { createHash, createHmac } from 'node:crypto';
import { compilePattern, firstMatch } from './patterns.ts';
import { rawNumber } from '../../cells/json-line.ts';
import { operate } from './jinja-operators.ts';
import { isFloat, pyFloat, pyInt, roundHalfEven } from './python-number.ts';
import { pyText } from './python-literal.ts';
import {
  bounded,
  type Callable,
  compare,
  equal,
  isMapping,
  itemsOf,
  type Named,
  numberArgument,
  numberOf,
  spendOn,
  TemplateError,
  textArgument,
  truthy,
} from './values.ts';

const HASHES: ReadonlySet<string> = new Set(['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512']);
const MAX_PATTERN_LENGTH = 1000;

/** Airbyte's own filters, and those of Jinja that need nothing but values. `args[0]` is the value. */
export const FILTERS: Record<string, Callable> = {
  hash: ([value, kind = 'md5', salt], named) => {
    const name = String(named.hash_type ?? kind);
    if (!HASHES.has(name)) throw new TemplateError(`unknown hash "${name}"`);
    return createHash(name)
      .update(pyText(value))
      .update(pyText(named.salt ?? salt ?? ''))
      .digest('hex');
  },
  hmac: ([value, key], named) =>
    createHmac('sha256', pyText(named.key ?? key))
      .update(pyText(value))
      .digest('hex'),
  base64encode: ([value]) => Buffer.from(textArgument(value)).toString('base64'),
  base64decode: ([value]) => Buffer.from(textArgument(value), 'base64').toString('utf8'),
  b64encode: ([value]) => Buffer.from(textArgument(value)).toString('base64'),
  b64decode: ([value]) => Buffer.from(textArgument(value), 'base64').toString('utf8'),
  urlEncoder: ([value]) => encodeURIComponent(pyText(value)),
  urldecode: ([value]) => decodeURIComponent(textArgument(value)),
  codechallengeS256: ([value]) => createHash('sha256').update(textArgument(value)).digest('base64url'),
  base64binascii_decode: ([value]) => Buffer.from(textArgument(value), 'latin1').toString('base64'),
  regex_search: ([value, pattern], named) => regexSearch(textArgument(value), textArgument(named.regex ?? pattern)),
  string: ([value]) => (typeof value === 'string' ? value : isMapping(value) ? JSON.stringify(value) : pyText(value)),
  int: ([value, otherwise = 0], named) => integer(value, named.default ?? otherwise),
  float: ([value, otherwise], named) => {
    const number = real(value);
    return number === null ? (named.default ?? otherwise ?? pyFloat(0)) : pyFloat(number);
  },
  bool: ([value]) => truthy(value) && !/^(false|0|no|off)$/i.test(pyText(value)),
  abs: ([value]) => {
    const number = Math.abs(numberArgument(value));
    return isFloat(value) ? pyFloat(number) : number;
  },
  round: ([value, precision, method], named) =>
    rounded(value, numberArgument(named.precision ?? precision, 0), named.method ?? method ?? 'common'),
  lower: ([value]) => pyText(value).toLowerCase(),
  upper: ([value]) => pyText(value).toUpperCase(),
  capitalize: ([value]) => pyText(value).slice(0, 1).toUpperCase() + pyText(value).slice(1).toLowerCase(),
  title: ([value]) =>
    pyText(value).replaceAll(/\S+/g, (word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()),
  trim: ([value]) => pyText(value).trim(),
  replace: ([value, old, next]) => bounded(pyText(value).replaceAll(textArgument(old), () => textArgument(next))),
  default: (args, named) => orElse(args, named),
  d: (args, named) => orElse(args, named),
  length: ([value]) => itemsOf(value).length,
  count: ([value]) => itemsOf(value).length,
  first: ([value]) => itemsOf(value)[0],
  last: ([value]) => itemsOf(value).at(-1),
  list: ([value]) => [...itemsOf(value)],
  reverse: ([value]) =>
    typeof value === 'string' ? Array.from(value).toReversed().join('') : itemsOf(value).toReversed(),
  join: ([value, separator = ''], named) => {
    const parts =
      named.attribute === undefined ? itemsOf(value) : itemsOf(value).map((item) => pick(item, named.attribute));
    const texts = parts.map(pyText);
    spendOn(texts);
    return bounded(texts.join(pyText(separator)));
  },
  items: ([value]) => (isMapping(value) ? Object.entries(value) : []),
  dictsort: ([value]) => (isMapping(value) ? Object.entries(value).toSorted(([a], [b]) => compare(a, b)) : []),
  unique: ([value]) => itemsOf(value).filter((item, at, all) => all.findIndex((one) => equal(one, item)) === at),
  sort: ([value], named) => {
    const sorted = itemsOf(value).toSorted((a, b) => compare(pick(a, named.attribute), pick(b, named.attribute)));
    return truthy(named.reverse) ? sorted.toReversed() : sorted;
  },
  min: ([value], named) => extreme(value, named, -1),
  max: ([value], named) => extreme(value, named, 1),
  sum: ([value], named) =>
    itemsOf(value).reduce((sum: unknown, item) => operate('+', sum, pick(item, named.attribute)), 0),
  map: (args, named) => {
    const [value, name] = args;
    if (named.attribute !== undefined)
      return itemsOf(value).map((item) => pick(item, named.attribute) ?? named.default);
    const filter = FILTERS[textArgument(name)];
    if (!filter) throw new TemplateError(`unknown filter "${pyText(name)}"`);
    return itemsOf(value).map((item) => {
      spendOn([item]);
      return filter([item, ...args.slice(2)], {});
    });
  },
  select: ([value]) => itemsOf(value).filter(truthy),
  reject: ([value]) => itemsOf(value).filter((item) => !truthy(item)),
  selectattr: (args) => selected(args, true),
  rejectattr: (args) => selected(args, false),
  tojson: ([value]) => JSON.stringify(value ?? null),
  urlencode: ([value]) =>
    isMapping(value)
      ? new URLSearchParams(
          Object.fromEntries(Object.entries(value).map(([name, item]) => [name, pyText(item)])),
        ).toString()
      : encodeURIComponent(pyText(value)).replaceAll('%2F', '/'),
};

function orElse([value, instead = '', falsy]: unknown[], named: Named): unknown {
  const replacement = named.default_value ?? instead;
  const isMissing = value === undefined || (truthy(named.boolean ?? falsy) && !truthy(value));
  return isMissing ? replacement : value;
}

function regexSearch(value: string, pattern: string): string {
  if (pattern.length > MAX_PATTERN_LENGTH) throw new TemplateError('the pattern is too long');
  const compiled = compilePattern(pattern);
  if (!compiled) throw new TemplateError(`"${pattern.slice(0, 100)}" is not a valid RE2 pattern`);
  // As with Airbyte, a pattern without a group has no result.
  return compiled.groupCount() > 0 ? (firstMatch(compiled, value) ?? '') : '';
}

function integer(value: unknown, instead: unknown): unknown {
  const text = typeof value === 'string' ? value.trim() : rawNumber(value);
  if (text !== null && /^[-+]?\d{1,1000}$/.test(text)) return pyInt(BigInt(text.replace('+', '')));
  const number = real(value);
  return number === null || !Number.isFinite(number) ? instead : pyInt(BigInt(Math.trunc(number)));
}

/** Jinja's filter `round`: half to even by default, and the result of `ceil` and `floor` is a float. */
function rounded(value: unknown, decimals: number, method: unknown): unknown {
  const number = numberArgument(value);
  if (method === 'common') {
    if (isFloat(value)) return pyFloat(roundHalfEven(number, decimals));
    return decimals >= 0 ? number : roundHalfEven(number, decimals) + 0;
  }
  if (method !== 'ceil' && method !== 'floor') throw new TemplateError('the method of round is common, ceil or floor');
  const scale = 10 ** decimals;
  // Python's ceil and floor result in ints, which have no negative zero.
  return pyFloat((Math[method](number * scale) + 0) / scale);
}

function real(value: unknown): number | null {
  if (typeof value === 'string')
    return /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(value) ? Number(value) : null;
  return numberOf(value);
}

/** The value at a path such as `a.b.0`; the item itself without a path. */
function pick(item: unknown, path: unknown): unknown {
  if (path === undefined) return item;
  return pyText(path)
    .split('.')
    .reduce<unknown>((value, name) => {
      if (Array.isArray(value)) return value[Number(name)];
      return isMapping(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    }, item);
}

function extreme(value: unknown, named: Named, sign: 1 | -1): unknown {
  const of = (item: unknown) => pick(item, named.attribute);
  return itemsOf(value).reduce<unknown>(
    (best, item) => (best === undefined || compare(of(item), of(best)) * sign > 0 ? item : best),
    undefined,
  );
}

function selected([value, name, test, against]: unknown[], wanted: boolean): unknown[] {
  const passes = (found: unknown) => {
    if (test === undefined) return truthy(found);
    if (test === 'equalto' || test === 'eq' || test === '==') return equal(found, against);
    if (test === 'ne' || test === '!=') return !equal(found, against);
    if (test === 'in') return itemsOf(against).some((item) => equal(item, found));
    if (test === 'defined') return found !== undefined;
    throw new TemplateError(`selectattr does not support the test "${pyText(test)}"`);
  };
  return itemsOf(value).filter((item) => passes(pick(item, name)) === wanted);
}
