import { pyText } from './python-literal.ts';
import { parseSpan, PyTime, strftime, strptime, parseTime } from './python-time.ts';
import {
  type Callable,
  compare,
  itemsOf,
  type Named,
  TemplateError,
  textArgument,
  numberArgument,
  UndefinedError,
} from './values.ts';

const DAY = 86_400_000_000;
const DEFAULT_FORMAT = '%Y-%m-%dT%H:%M:%S.%f%z';

/** The documented functions of manifests. @param now the one clock there is */
export function macros(now: () => Date): Record<string, Callable> {
  const current = () => new PyTime(now().getTime() * 1000);
  return {
    now_utc: current,
    today_utc: () => today(current()),
    today_with_timezone: ([zone]) => today(inZone(now(), textArgument(zone))),
    timestamp: ([value]) => {
      if (typeof value === 'number') return Math.trunc(value);
      return time(value).micros / 1_000_000;
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
      const span = parseSpan(textArgument(text));
      if (!span) throw new TemplateError(`"${pyText(text)}" is no ISO 8601 duration`);
      return span;
    },
    format_datetime: formatDatetime,
  };
}

export const MACRO_NAMES: ReadonlySet<string> = new Set(Object.keys(macros(() => new Date(0))));

const today = ({ micros }: PyTime) => new PyTime(Math.floor(micros / DAY) * DAY, true);

function inZone(now: Date, zone: string): PyTime {
  try {
    const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
    return time(format.format(now));
  } catch {
    throw new TemplateError(`there is no time zone "${zone}"`);
  }
}

function formatDatetime(args: unknown[], named: Named): string {
  const format = textArgument(args[1] ?? named.format);
  const input = args[2] ?? named.input_format;
  const value = args[0] ?? named.dt;
  const parsed = input === undefined || input === null ? null : strptime(String(value), textArgument(input));
  return strftime(parsed ?? time(value), format);
}

/** @throws UndefinedError for nothing, TemplateError for what is no time */
export function time(value: unknown): PyTime {
  if (value === undefined || value === null) throw new UndefinedError('there is no time');
  const parsed = parseTime(value);
  if (!parsed) throw new TemplateError(`"${pyText(value).slice(0, 100)}" is no time`);
  return parsed;
}

function extreme(args: unknown[], sign: 1 | -1): unknown {
  const items = args.length === 1 ? itemsOf(args[0]) : args;
  if (items.length === 0) throw new TemplateError('there is nothing to compare');
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best));
}
