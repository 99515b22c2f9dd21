/*
 * Converts timestamps between text and microseconds since 1970 UTC, as a number that is exact up to the year 2255.
 * `Date` only has milliseconds.
 */

const DAY = 86_400_000_000;
const TWO = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, '0'));
const THREE = Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, '0'));
const FORM = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?\d*)?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/;

let cachedDay = Number.NaN;
let cachedDate = '';

/** `2026-01-31` for a number of days since 1970. */
export function dateText(day: number): string {
  if (day !== cachedDay) {
    cachedDate = new Date(day * 86_400_000).toISOString().slice(0, 10);
    cachedDay = day;
  }
  return cachedDate;
}

/** The canonical cell `2026-01-31 23:59:59.123456+00`. */
export function timestampText(micros: number): string {
  const day = Math.floor(micros / DAY);
  const rest = micros - day * DAY;
  const second = Math.floor(rest / 1_000_000);
  const fraction = rest - second * 1_000_000;
  const hour = (second / 3600) | 0;
  const minute = ((second - hour * 3600) / 60) | 0;
  const millis = (fraction / 1000) | 0;
  const time = `${TWO[hour]}:${TWO[minute]}:${TWO[second % 60]}`;
  return `${dateText(day)} ${time}.${THREE[millis]}${THREE[fraction - millis * 1000]}+00`;
}

/** Microseconds of a date or timestamp in ISO 8601 or PostgreSQL's form; without a zone it is UTC. NaN if invalid. */
export function microsOf(text: string): number {
  const match = FORM.exec(text);
  if (!match) return Number.NaN;
  const [, date, time = '00:00:00', fraction = '', zone = 'Z'] = match;
  const millis = Date.parse(`${date}T${time.length === 5 ? `${time}:00` : time}${zoneOf(zone)}`);
  return millis * 1000 + Number(fraction.padEnd(6, '0'));
}

function zoneOf(zone: string): string {
  if (zone === 'Z') return zone;
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0');
  return `${zone[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}
