import { digitsOf } from '../../cells/json-cells.ts';
import { dateText, microsOf } from '../../cells/timestamp-text.ts';
import { TemplateError } from './template-error.ts';

const SECOND = 1_000_000;
const DAY = 86_400 * SECOND;

/** A duration. Months are kept apart because their length varies. */
export class PyDuration {
  constructor(
    readonly micros: number,
    readonly months = 0,
  ) {}

  text(): string {
    const days = Math.floor(this.micros / DAY);
    const rest = this.micros - days * DAY;
    const clock = new Date(rest / 1000).toISOString().slice(11, 19).replace(/^0/, '');
    return days === 0 ? clock : `${days} day${Math.abs(days) === 1 ? '' : 's'}, ${clock}`;
  }
}

/** A time in UTC, in microseconds since 1970, or a date. */
export class PyTime {
  constructor(
    readonly micros: number,
    readonly isDay = false,
  ) {}

  text(): string {
    const day = dateText(Math.floor(this.micros / DAY));
    return this.isDay ? day : `${day} ${clockText(this.micros)}${fractionText(this.micros)}+00:00`;
  }

  plus({ micros, months }: PyDuration, sign: 1 | -1): PyTime {
    const moved = months === 0 ? this.micros : addMonths(this.micros, sign * months);
    return new PyTime(moved + sign * micros, this.isDay);
  }
}

const fractionText = (micros: number) => (micros % SECOND === 0 ? '' : `.${fraction(micros)}`);
const fraction = (micros: number) => String(micros - Math.floor(micros / SECOND) * SECOND).padStart(6, '0');
const clockText = (micros: number) => new Date(Math.floor(micros / SECOND) * 1000).toISOString().slice(11, 19);

/** Keeps the day of the month, or uses the last day of a shorter month. */
function addMonths(micros: number, months: number): number {
  const date = new Date(Math.floor(micros / 1000));
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime() * 1000 + (micros - Math.floor(micros / 1000) * 1000);
}

const DURATION =
  /^(-)?P(?:(\d+(?:\.\d+)?)Y)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** Parses an ISO 8601 duration; null when the text is not one. */
export function parseDuration(text: string): PyDuration | null {
  const match = DURATION.exec(text.trim());
  if (!match || text.trim().replace('-', '') === 'P') return null;
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match
    .slice(2)
    .map((part) => Number(part ?? 0));
  const sign = match[1] ? -1 : 1;
  const micros = (weeks * 7 + days) * DAY + (hours * 3600 + minutes * 60 + seconds) * SECOND;
  return new PyDuration(sign * Math.round(micros), sign * (years * 12 + months));
}

/** Parses any common format of a time, in UTC when it has no zone; null when the value is not a time. */
export function parseTime(value: unknown): PyTime | null {
  if (value instanceof PyTime) return value;
  const digits = digitsOf(value);
  if (digits !== null) return epochTime(Number(digits));
  if (typeof value !== 'string') return null;
  const text = value.trim();
  if (/^-?\d{9,}(\.\d+)?$/.test(text)) return epochTime(Number(text));
  const micros = microsOf(text);
  if (Number.isFinite(micros)) return new PyTime(micros);
  if (/^\d{8}$/.test(text)) return strptime(text, '%Y%m%d');
  const millis = /[a-z]{3}/i.test(text)
    ? Date.parse(/GMT|UTC|[+-]\d{4}/.test(text) ? text : `${text} UTC`)
    : Number.NaN;
  return Number.isFinite(millis) ? new PyTime(millis * 1000) : null;
}

const epochTime = (value: number) => new PyTime(Math.round(Math.abs(value) > 1e11 ? value * 1000 : value * SECOND));

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = 'January,February,March,April,May,June,July,August,September,October,November,December'.split(',');
const WIDTHS: Record<string, string> = { Y: '\\d{4}', f: '\\d{1,9}', j: '\\d{1,3}', y: '\\d{2}' };
const DIRECTIVE = /%(s_as_float|epoch_microseconds|_ms|ms|-[dmHIMSyj]|[a-zA-Z%])/g;
const ZONE = '(?:Z|UTC|[+-]\\d{2}:?\\d{2}(?::?\\d{2})?)';

/** @param format directives of strftime, and %s, %s_as_float, %ms, %_ms, %epoch_microseconds */
export function strftime({ micros }: PyTime, format: string): string {
  const date = new Date(Math.floor(micros / 1000));
  const two = (value: number) => String(value).padStart(2, '0');
  const dayOfYear = Math.floor((micros - Date.UTC(date.getUTCFullYear(), 0, 1) * 1000) / DAY);
  const parts: Record<string, () => string> = {
    s: () => String(Math.floor(micros / SECOND)),
    s_as_float: () => floatText(micros / SECOND),
    ms: () => String(Math.floor(micros / 1000)),
    _ms: () => fraction(micros).slice(0, 3),
    epoch_microseconds: () => String(micros),
    Y: () => String(date.getUTCFullYear()).padStart(4, '0'),
    y: () => two(date.getUTCFullYear() % 100),
    m: () => two(date.getUTCMonth() + 1),
    d: () => two(date.getUTCDate()),
    H: () => two(date.getUTCHours()),
    I: () => two(date.getUTCHours() % 12 || 12),
    M: () => two(date.getUTCMinutes()),
    S: () => two(date.getUTCSeconds()),
    f: () => fraction(micros),
    p: () => (date.getUTCHours() < 12 ? 'AM' : 'PM'),
    j: () => String(dayOfYear + 1).padStart(3, '0'),
    z: () => '+0000',
    Z: () => 'UTC',
    A: () => DAYS[date.getUTCDay()] ?? '',
    a: () => DAYS[date.getUTCDay()]?.slice(0, 3) ?? '',
    B: () => MONTHS[date.getUTCMonth()] ?? '',
    b: () => MONTHS[date.getUTCMonth()]?.slice(0, 3) ?? '',
    w: () => String(date.getUTCDay()),
    u: () => String(date.getUTCDay() || 7),
    F: () => date.toISOString().slice(0, 10),
    T: () => date.toISOString().slice(11, 19),
    e: () => String(date.getUTCDate()).padStart(2),
    D: () => `${two(date.getUTCMonth() + 1)}/${two(date.getUTCDate())}/${two(date.getUTCFullYear() % 100)}`,
    R: () => date.toISOString().slice(11, 16),
    U: () => two(Math.floor((dayOfYear + 7 - date.getUTCDay()) / 7)),
    W: () => two(Math.floor((dayOfYear + 7 - ((date.getUTCDay() + 6) % 7)) / 7)),
    '%': () => '%',
  };
  return format.replaceAll(DIRECTIVE, (whole, name: string) => {
    const part = parts[name.startsWith('-') ? name.slice(1) : name];
    if (!part) throw new TemplateError(`the directive ${whole} of strftime is not supported`);
    return name.startsWith('-') ? part().replace(/^0+(?=\d)/, '') : part();
  });
}

const floatText = (value: number) => (Number.isInteger(value) ? `${value}.0` : String(value));

const patterns = new Map<string, { pattern: RegExp; names: string[] }>();

function patternOf(format: string) {
  const known = patterns.get(format);
  if (known) return known;
  const names: string[] = [];
  const group = (name: string) => {
    names.push(name);
    if (name === 's' || name === 'ms' || name === 'epoch_microseconds') return '(-?\\d+)';
    if (name === 's_as_float') return '(-?\\d+(?:\\.\\d+)?)';
    if (name === 'z' || name === 'Z') return `(${ZONE})`;
    if (name === 'p') return '([AaPp][Mm])';
    if (/^[AaBb]$/.test(name)) return '([A-Za-z]+)';
    return name === '_ms' ? '(\\d{1,6})' : `(${WIDTHS[name] ?? '\\d{1,2}'})`;
  };
  let source = '';
  let end = 0;
  for (const match of format.matchAll(DIRECTIVE)) {
    source += escaped(format.slice(end, match.index)) + (match[1] === '%' ? '%' : expand(match[1] ?? '', group));
    end = match.index + match[0].length;
  }
  const compiled = { pattern: new RegExp(`^${source}${escaped(format.slice(end))}$`), names };
  if (patterns.size > 500) patterns.clear();
  patterns.set(format, compiled);
  return compiled;
}

function expand(name: string, group: (name: string) => string): string {
  if (name === 'F') return `${group('Y')}-${group('m')}-${group('d')}`;
  if (name === 'T') return `${group('H')}:${group('M')}:${group('S')}`;
  return group(name.replace('-', ''));
}

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');

const MAX_TIME_LENGTH = 100;
const EPOCHS = new Set(['s', 's_as_float', 'ms', 'epoch_microseconds']);

/** Parses a text in the given format; null when it does not match. `%z` accepts `Z` too. */
export function strptime(text: string, format: string): PyTime | null {
  const { pattern, names } = patternOf(format);
  // As in Python, a directive occurs once. This also bounds the ways in which a text can match.
  const isTwice = new Set(names).size < names.length || names.filter((name) => EPOCHS.has(name)).length > 1;
  if (isTwice || text.length > MAX_TIME_LENGTH) return null;
  const match = pattern.exec(text);
  if (!match) return null;
  const found = Object.fromEntries(names.map((name, at) => [name, match[at + 1] ?? '']));
  return fromEpoch(found) ?? fromParts(found);
}

function fromEpoch({ s, s_as_float, ms, epoch_microseconds }: Record<string, string>): PyTime | null {
  if (s !== undefined) return new PyTime(Number(s) * SECOND);
  if (s_as_float !== undefined) return new PyTime(Math.round(Number(s_as_float) * SECOND));
  if (ms !== undefined) return new PyTime(Number(ms) * 1000);
  return epoch_microseconds === undefined ? null : new PyTime(Number(epoch_microseconds));
}

function fromParts(found: Record<string, string>): PyTime | null {
  const number = (name: string, otherwise: number) => (found[name] === undefined ? otherwise : Number(found[name]));
  const named = found.B ?? found.b;
  const month = named
    ? MONTHS.findIndex((name) => name.slice(0, 3).toLowerCase() === named.slice(0, 3).toLowerCase())
    : number('m', 1) - 1;
  const short = number('y', 0);
  const year = found.Y === undefined && found.y !== undefined ? short + (short < 69 ? 2000 : 1900) : number('Y', 1900);
  const day = found.j === undefined ? number('d', 1) : number('j', 1);
  const half = found.p?.toUpperCase();
  const hour = half === undefined ? number('H', 0) : (number('I', 12) % 12) + (half === 'PM' ? 12 : 0);
  const millis = Date.UTC(year, found.j === undefined ? month : 0, day, hour, number('M', 0), number('S', 0));
  const micros = Number((found.f ?? found._ms ?? '').padEnd(6, '0').slice(0, 6));
  if (month < 0 || !Number.isFinite(millis) || (found.j === undefined && new Date(millis).getUTCDate() !== day))
    return null;
  return new PyTime(millis * 1000 + micros - zoneMicros(found.z ?? found.Z ?? 'Z'));
}

function zoneMicros(zone: string): number {
  const match = /^([+-])(\d{2}):?(\d{2})/.exec(zone);
  return match ? (match[1] === '-' ? -1 : 1) * (Number(match[2]) * 60 + Number(match[3])) * 60 * SECOND : 0;
}
