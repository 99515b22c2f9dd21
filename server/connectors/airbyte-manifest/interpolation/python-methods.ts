import { pyFloat } from './python-number.ts';
import { pyText } from './python-literal.ts';
import { PyDuration, PyTime, strftime } from './python-time.ts';
import { bounded, type Callable, isMapping, itemsOf, numberArgument, TemplateError, textArgument } from './values.ts';

const SECOND = 1_000_000;
const DAY = 86_400 * SECOND;

/** An attribute or method that the value has in Python; undefined when there is none. */
export function attributeOf(value: unknown, name: string): unknown {
  if (typeof value === 'string') return bind(own(TEXT, name), value);
  if (Array.isArray(value)) return bind(own(LIST, name), value);
  if (value instanceof PyTime) return timeAttribute(value, name);
  if (value instanceof PyDuration) return durationAttribute(value, name);
  if (isMapping(value)) return bind(own(MAPPING, name), value);
  return undefined;
}

/** Own entries alone: `constructor` and the like would lead out of the template. */
const own = <Value>(table: Record<string, Value>, name: string): Value | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

type Method<Value> = (value: Value, args: unknown[], named: Record<string, unknown>) => unknown;
const bind = <Value>(method: Method<Value> | undefined, value: Value): Callable | undefined =>
  method && ((args, named) => method(value, args, named));

/** Strips the given characters, or white space by default. */
function strip(value: string, chars: unknown, sides: 'both' | 'left' | 'right'): string {
  const unwanted = chars === undefined || chars === null ? null : new Set(textArgument(chars));
  const drops = (char: string | undefined) => char !== undefined && (unwanted ? unwanted.has(char) : /\s/.test(char));
  let [from, to] = [0, value.length];
  if (sides !== 'right') while (from < to && drops(value[from])) from += 1;
  if (sides !== 'left') while (to > from && drops(value[to - 1])) to -= 1;
  return value.slice(from, to);
}

function split(value: string, [separator, most]: unknown[]): string[] {
  const limit = most === undefined ? Infinity : numberArgument(most);
  if (separator === undefined || separator === null) return value.trim() === '' ? [] : value.trim().split(/\s+/);
  const parts = value.split(textArgument(separator));
  if (limit < 0 || parts.length <= limit + 1) return parts;
  return [...parts.slice(0, limit), parts.slice(limit).join(textArgument(separator))];
}

const starts = (value: string, part: unknown) => [part].flat().some((one) => value.startsWith(textArgument(one)));
const ends = (value: string, part: unknown) => [part].flat().some((one) => value.endsWith(textArgument(one)));
const titled = (value: string) =>
  value
    .toLowerCase()
    .replaceAll(/(^|[^a-z])([a-z])/g, (_, before: string, letter: string) => before + letter.toUpperCase());

const TEXT: Record<string, Method<string>> = {
  split,
  strip: (value, [chars]) => strip(value, chars, 'both'),
  lstrip: (value, [chars]) => strip(value, chars, 'left'),
  rstrip: (value, [chars]) => strip(value, chars, 'right'),
  lower: (value) => value.toLowerCase(),
  upper: (value) => value.toUpperCase(),
  title: titled,
  capitalize: (value) => value.slice(0, 1).toUpperCase() + value.slice(1).toLowerCase(),
  startswith: (value, [part]) => starts(value, part),
  endswith: (value, [part]) => ends(value, part),
  replace: (value, [old, next]) => bounded(value.replaceAll(textArgument(old), () => textArgument(next))),
  join: (value, [items]) => bounded(itemsOf(items).map(textArgument).join(value)),
  find: (value, [part]) => value.indexOf(textArgument(part)),
  count: (value, [part]) => value.split(textArgument(part)).length - 1,
  isdigit: (value) => /^\d+$/.test(value),
  isnumeric: (value) => /^\d+$/.test(value),
  zfill: (value, [width]) => value.padStart(Math.min(numberArgument(width), 1000), '0'),
  removeprefix: (value, [part]) => (starts(value, part) ? value.slice(textArgument(part).length) : value),
  removesuffix: (value, [part]) =>
    ends(value, part) ? value.slice(0, value.length - textArgument(part).length) : value,
  format: (value, args) => {
    let at = 0;
    return bounded(
      value.replaceAll(/\{(\d*)\}/g, (_, index: string) => pyText(args[index === '' ? at++ : Number(index)])),
    );
  },
};

const LIST: Record<string, Method<unknown[]>> = {
  index: (value, [item]) => value.indexOf(item),
  count: (value, [item]) => value.filter((one) => one === item).length,
};

const MAPPING: Record<string, Method<Record<string, unknown>>> = {
  get: (value, [name, otherwise], named) => {
    const key = pyText(name);
    return Object.hasOwn(value, key) ? value[key] : (otherwise ?? named.default ?? null);
  },
  items: (value) => Object.entries(value),
  keys: (value) => Object.keys(value),
  values: (value) => Object.values(value),
};

function timeAttribute(value: PyTime, name: string): unknown {
  const date = new Date(Math.floor(value.micros / 1000));
  const parts: Record<string, () => unknown> = {
    year: () => date.getUTCFullYear(),
    month: () => date.getUTCMonth() + 1,
    day: () => date.getUTCDate(),
    hour: () => date.getUTCHours(),
    minute: () => date.getUTCMinutes(),
    second: () => date.getUTCSeconds(),
    microsecond: () => value.micros - Math.floor(value.micros / SECOND) * SECOND,
  };
  const methods: Record<string, Callable> = {
    strftime: ([format]) => strftime(value, textArgument(format)),
    isoformat: () => value.text().replace(' ', 'T'),
    timestamp: () => pyFloat(value.micros / SECOND),
    date: () => new PyTime(Math.floor(value.micros / DAY) * DAY, true),
    weekday: () => (date.getUTCDay() + 6) % 7,
    isoweekday: () => date.getUTCDay() || 7,
    replace: (_, named) => replaced(value, named),
    astimezone: () => value,
  };
  return Object.hasOwn(parts, name) ? parts[name]?.() : Object.hasOwn(methods, name) ? methods[name] : undefined;
}

function replaced(value: PyTime, named: Record<string, unknown>): PyTime {
  const date = new Date(Math.floor(value.micros / 1000));
  const part = (name: string, known: number) => numberArgument(named[name], known);
  const millis = Date.UTC(
    part('year', date.getUTCFullYear()),
    part('month', date.getUTCMonth() + 1) - 1,
    part('day', date.getUTCDate()),
    part('hour', date.getUTCHours()),
    part('minute', date.getUTCMinutes()),
    part('second', date.getUTCSeconds()),
  );
  if (!Number.isFinite(millis)) throw new TemplateError('the time does not exist');
  const micro = part('microsecond', value.micros - Math.floor(value.micros / SECOND) * SECOND);
  return new PyTime(millis * 1000 + micro, value.isDay);
}

function durationAttribute(value: PyDuration, name: string): unknown {
  if (name === 'days') return Math.floor(value.micros / DAY);
  if (name === 'seconds') return Math.floor((value.micros - Math.floor(value.micros / DAY) * DAY) / SECOND);
  return name === 'total_seconds' ? () => pyFloat(value.micros / SECOND) : undefined;
}
