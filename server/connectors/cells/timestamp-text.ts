/*
 * The one reading of dates and times. A day and the microseconds of that day are both exact as JavaScript numbers, for
 * every year: a single count of microseconds is not, from the year 2255 on. `Date` only has milliseconds, and moves
 * 30 February to March.
 */

/** A moment in UTC. */
export interface Instant {
  /** Days since 1970. */
  day: number;
  /** Microseconds of the day. */
  micros: number;
}

/** A text as it was read. `infinity` and `-infinity` are values of PostgreSQL. */
export interface ParsedTime {
  at: Instant | 'infinity' | '-infinity';
  /** What the text has besides the date. */
  hasTime: boolean;
  hasZone: boolean;
  /** It has more than six digits of a second, cut off here. */
  finer: boolean;
}

const SECOND = 1_000_000;
const DAY = 86_400 * SECOND;
const TWO = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, '0'));
const THREE = Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, '0'));
const FORM =
  /^\+?(\d{4,6})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)? ?(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?( BC)?$/;
const MONTH_DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** Of PostgreSQL. */
const MAX_YEAR = 294_276;
const MIN_YEAR = -4712;
const MAX_ZONE_HOURS = 15;

const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
const lengthOf = (year: number, month: number) => (month === 2 && isLeap(year) ? 29 : (MONTH_DAYS[month] ?? 0));

/** Days since 1970 in the Gregorian calendar. The year before 1 is 0. */
function dayNumber(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

function calendarOf(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return { year, month, day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1 };
}

let cachedDay = Number.NaN;
let cachedDate = '';
let cachedEra = '';

function cacheDate(day: number): void {
  if (day === cachedDay) return;
  const date = calendarOf(day);
  const year = date.year > 0 ? date.year : 1 - date.year;
  cachedDate = `${String(year).padStart(4, '0')}-${TWO[date.month]}-${TWO[date.day]}`;
  cachedEra = date.year > 0 ? '' : ' BC';
  cachedDay = day;
}

/** `2026-01-31`, or `0044-03-15 BC`, for a number of days since 1970. */
export function dateText(day: number): string {
  cacheDate(day);
  return cachedDate + cachedEra;
}

/** `23:59:59.123456` */
function clockText(micros: number): string {
  const second = Math.floor(micros / SECOND);
  const fraction = micros - second * SECOND;
  const hour = (second / 3600) | 0;
  const minute = ((second - hour * 3600) / 60) | 0;
  const millis = (fraction / 1000) | 0;
  return `${TWO[hour]}:${TWO[minute]}:${TWO[second % 60]}.${THREE[millis]}${THREE[fraction - millis * 1000]}`;
}

/** The canonical cell `2026-01-31 23:59:59.123456+00`, with ` BC` for a year before 1. `zone`: what follows the time. */
export function instantText({ day, micros }: Instant, zone: '' | '+00' = '+00'): string {
  cacheDate(day);
  return `${cachedDate} ${clockText(micros)}${zone}${cachedEra}`;
}

/** `instantText` for microseconds since 1970 as one number, which is exact up to the year 2255. */
export function timestampText(micros: number): string {
  const day = Math.floor(micros / DAY);
  return instantText({ day, micros: micros - day * DAY });
}

/** `2026-01-31T23:59:59.5Z`; null for what RFC 3339 has no form: infinity, and years beyond 1 to 9999. */
export function rfc3339({ at }: ParsedTime): string | null {
  if (typeof at === 'string') return null;
  cacheDate(at.day);
  if (cachedEra !== '' || cachedDate.length > 10) return null;
  return `${cachedDate}T${clockText(at.micros).replace(/\.?0+$/, '')}Z`;
}

/** An offset in microseconds; NaN if there is none so large. */
function zoneMicros(zone: string): number {
  if (zone === 'Z') return 0;
  const digits = zone.slice(1).replaceAll(':', '').padEnd(6, '0');
  const [hours, minutes, seconds] = [digits.slice(0, 2), digits.slice(2, 4), digits.slice(4)].map(Number) as [
    number,
    number,
    number,
  ];
  if (hours > MAX_ZONE_HOURS || minutes > 59 || seconds > 59) return Number.NaN;
  return (zone[0] === '-' ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds) * SECOND;
}

/** Reads a date or timestamp in ISO 8601 or PostgreSQL's form; without a zone it is UTC. Null if there is no such time. */
export function parseTime(text: string): ParsedTime | null {
  if (text === 'infinity' || text === '-infinity') return { at: text, hasTime: true, hasZone: true, finer: false };
  const match = FORM.exec(text);
  if (!match) return null;
  const [, years, months, days, hours, minutes = '0', seconds = '0', fraction = '', zone, era] = match;
  const hasTime = hours !== undefined;
  const [written, month, dayOfMonth] = [Number(years), Number(months), Number(days)];
  const year = era ? 1 - written : written;
  if (written === 0 || year > MAX_YEAR || year < MIN_YEAR || dayOfMonth < 1 || dayOfMonth > lengthOf(year, month)) {
    return null;
  }
  const [hour, minute, second] = [Number(hours ?? 0), Number(minutes), Number(seconds)];
  const offset = zone === undefined ? 0 : zoneMicros(zone);
  if (hour > 23 || minute > 59 || second > 59 || Number.isNaN(offset)) return null;
  const parts = Number(fraction.slice(0, 6).padEnd(6, '0'));
  let micros = ((hour * 60 + minute) * 60 + second) * SECOND + parts - offset;
  let day = dayNumber(year, month, dayOfMonth);
  if (micros < 0) [day, micros] = [day - 1, micros + DAY];
  else if (micros >= DAY) [day, micros] = [day + 1, micros - DAY];
  return { at: { day, micros }, hasTime, hasZone: zone !== undefined, finer: /[1-9]/.test(fraction.slice(6)) };
}

/** The order of two moments; `-infinity` is before all others, `infinity` after them. */
export function compareMoments(a: ParsedTime['at'], b: ParsedTime['at']): number {
  const [one, other] = [sortable(a), sortable(b)];
  return one.day === other.day ? one.micros - other.micros : one.day < other.day ? -1 : 1;
}

const sortable = (at: ParsedTime['at']): Instant =>
  typeof at === 'string' ? { day: at === 'infinity' ? Infinity : -Infinity, micros: 0 } : at;

/** Microseconds since 1970 as one number, exact up to the year 2255. NaN if `parseTime` reads no time of the calendar. */
export function microsOf(text: string): number {
  const at = parseTime(text)?.at;
  return at === undefined || typeof at === 'string' ? Number.NaN : at.day * DAY + at.micros;
}

/** The nearest moment with so many digits of a second. */
export function roundedTo({ day, micros }: Instant, places: number): Instant {
  const unit = 10 ** (6 - places);
  const rounded = Math.round(micros / unit) * unit;
  return rounded < DAY ? { day, micros: rounded } : { day: day + 1, micros: rounded - DAY };
}
