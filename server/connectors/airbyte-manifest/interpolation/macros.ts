import { randomUUID } from 'node:crypto';
import { parseExactly } from '../../cells/json-line.ts';
import { pyFloat } from './python-number.ts';
import { pyText } from './python-literal.ts';
import { parseDuration, parseTime, PyTime, strftime, strptime } from './python-time.ts';
import {
  type Callable,
  compare,
  itemsOf,
  type Named,
  numberArgument,
  numberOf,
  TemplateError,
  textArgument,
  UndefinedError,
} from './values.ts';

const DAY = 86_400_000_000;
const DEFAULT_FORMAT = '%Y-%m-%dT%H:%M:%S.%f%z';

/** The documented macros of manifests. @param now the clock of the connector */
export function macros(now: () => Date): Record<string, Callable> {
  const current = () => new PyTime(now().getTime() * 1000);
  return {
    now_utc: current,
    today_utc: () => today(current()),
    today_with_timezone: ([zone]) => today(inZone(now(), textArgument(zone))),
    timestamp: ([value]) => {
      const number = typeof value === 'string' ? null : numberOf(value);
      if (number !== null) return Math.trunc(number);
      return pyFloat(time(value).micros / 1_000_000);
    },
    str_to_datetime: ([value]) => time(value),
    max: (args) => extreme(args, 1),
    min: (args) => extreme(args, -1),
    day_delta: (args, named) => {
      const [days, format] = [args[0] ?? named.num_days, args[1] ?? named.format ?? DEFAULT_FORMAT];
      const moved = new PyTime(current().micros + numberArgument(days) * DAY);
      return strftime(moved, textArgument(format));
    },
    duration: ([text]) => {
      const duration = parseDuration(textArgument(text));
      if (!duration) throw new TemplateError(`"${pyText(text)}" is not an ISO 8601 duration`);
      return duration;
    },
    format_datetime: formatDatetime,
    sanitize_url: ([value]) => quotePlus(textArgument(value)),
    camel_case_to_snake_case: ([value]) =>
      textArgument(value)
        .replaceAll(/(?<!^)(?=[A-Z])/g, '_')
        .toLowerCase(),
    generate_uuid: () => randomUUID(),
    namespace,
    json_loads: ([text]) => parsedJson(textArgument(text)),
  };
}

/** Jinja's own: what `{% set a.b = … %}` may change. */
const namespaces = new WeakSet<object>();

function namespace(_: unknown[], named: Named): Record<string, unknown> {
  const created = { ...named };
  namespaces.add(created);
  return created;
}

export const isNamespace = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && namespaces.has(value);

/** The JWT authenticator's own, for keys in the form of a JSON document. */
function parsedJson(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    throw new TemplateError('the value is not JSON');
  }
}

export const MACRO_NAMES: ReadonlySet<string> = new Set(Object.keys(macros(() => new Date(0))));

const today = ({ micros }: PyTime) => new PyTime(Math.floor(micros / DAY) * DAY, true);

function inZone(now: Date, zone: string): PyTime {
  try {
    const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
    return time(format.format(now));
  } catch {
    throw new TemplateError(`unknown time zone "${zone}"`);
  }
}

function formatDatetime(args: unknown[], named: Named): string {
  const format = textArgument(args[1] ?? named.format);
  const input = args[2] ?? named.input_format;
  const value = args[0] ?? named.dt;
  const parsed = input === undefined || input === null ? null : strptime(pyText(value), textArgument(input));
  return strftime(parsed ?? time(value), format);
}

/** @throws UndefinedError for no value, TemplateError for a value that is not a time */
export function time(value: unknown): PyTime {
  if (value === undefined || value === null) throw new UndefinedError('the time is undefined');
  const parsed = parseTime(value);
  if (!parsed) throw new TemplateError(`"${pyText(value).slice(0, 100)}" is not a time`);
  return parsed;
}

/** Python's `quote_plus`. */
const quotePlus = (text: string) =>
  encodeURIComponent(text)
    .replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');

function extreme(args: unknown[], sign: 1 | -1): unknown {
  const items = args.length === 1 ? itemsOf(args[0]) : args;
  if (items.length === 0) throw new TemplateError('min and max need at least one value');
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best));
}
