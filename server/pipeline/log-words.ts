const whole = new Intl.NumberFormat('en');

/** `1 row`, `1,200 rows` */
export const inRows = (rows: number): string => `${whole.format(rows)} ${rows === 1 ? 'row' : 'rows'}`;

/** `12,345` */
export const inWords = (value: number): string => whole.format(value);

/** `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 10 min` */
export function inTime(milliseconds: number): string {
  const ms = Math.round(milliseconds);
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `1.2 MB` */
export function inBytes(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(SIZES.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${power === 0 ? bytes : (bytes / 1000 ** power).toFixed(1)} ${SIZES[power]}`;
}
