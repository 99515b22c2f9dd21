const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const moments = (timeZone?: string) =>
  new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long', ...(timeZone && { timeZone }) });
const clocks = (timeZone?: string) =>
  new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    ...(timeZone && { timeZone }),
  });
let moment = moments();
let clock = clocks();
/** The zone of the times that are shown, and the first choice for new schedules. */
export const timeZone = () => moment.resolvedOptions().timeZone;
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });

/** `12,345` */
export const formatCount = (value: number) => whole.format(value);
/** `12.3K` */
export const formatCompact = (value: number) => short.format(value);
/** Sets the zone of all times: the user's, or null for the browser's. */
export function setTimeZone(timezone: string | null): void {
  moment = moments(timezone ?? undefined);
  clock = clocks(timezone ?? undefined);
}
/** `20 Jan 2026, 13:45:10 CET`, in the zone that `setTimeZone` has set. */
export const formatDateTime = (at: string) => moment.format(new Date(at));
/** `13:45:10.120`, in the same zone. */
export const formatClock = (at: string) => clock.format(new Date(at));
/** `20 Jan` of a day `2026-01-20`. */
export const formatDay = (date: string) => day.format(new Date(`${date}T12:00:00`));

const UNITS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/** The browser writes `min.`, all else here `min`. */
const inUnits = (value: number, unit: Intl.RelativeTimeFormatUnit) => relative.format(value, unit).replace('.', '');

/** `5 min ago`, `in 2 days` */
export function formatRelativeTime(at: string, now: number): string {
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  const found = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  if (!found) return Math.abs(seconds) < 10 ? 'just now' : inUnits(seconds, 'second');
  return inUnits(Math.trunc(seconds / found[1]), found[0]);
}

/** `4 min behind` */
export function formatBehind(fresh_at: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(fresh_at)) / 1000));
  const [unit, , size] = BEHIND.find(([, least]) => seconds >= least) ?? ['s', 0, 1];
  return `${Math.trunc(seconds / size)} ${unit} behind`;
}

const BEHIND: [unit: string, from_seconds: number, seconds: number][] = [
  ['days', 172_800, 86_400],
  ['h', 7_200, 3_600],
  ['min', 60, 60],
];

/** `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 10 min` */
export function formatDuration(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `1.2 MB` */
export function formatBytes(value: number): string {
  let rest = value;
  let size = 0;
  while (rest >= 1000 && size < SIZES.length - 1) {
    rest /= 1000;
    size += 1;
  }
  return `${size === 0 ? rest : rest.toFixed(1)} ${SIZES[size]}`;
}

/** `1 row`, `2 rows`, with `formatCompact` `2.5K rows` */
export const pluralize = (value: number, noun: string, format = formatCount) =>
  `${format(value)} ${noun}${value === 1 ? '' : 's'}`;
