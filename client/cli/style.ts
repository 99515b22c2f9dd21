const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof CODES;
export type Style = (colour: Colour, text: string) => string;

export const styleOf =
  (colours: boolean): Style =>
  (colour, text) =>
    colours && text !== '' ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;

const OF_STATUS: Record<string, Colour> = {
  active: 'green',
  healthy: 'green',
  succeeded: 'green',
  passed: 'green',
  live: 'green',
  ok: 'green',
  resolved: 'green',
  running: 'blue',
  queued: 'blue',
  pending: 'blue',
  stopping: 'blue',
  retrying: 'yellow',
  rate_limited: 'yellow',
  paused: 'yellow',
  warning: 'yellow',
  partially_succeeded: 'yellow',
  pending_test: 'yellow',
  pending_auth: 'yellow',
  acknowledged: 'yellow',
  stopped: 'yellow',
  invited: 'yellow',
  failed: 'red',
  failing: 'red',
  broken: 'red',
  needs_reauth: 'red',
  auto_disabled: 'red',
  locked: 'red',
  open: 'red',
  reached: 'red',
  expired: 'red',
  revoked: 'red',
  errored: 'red',
};

export const colouredStatus = (style: Style, status: string): string => {
  const colour = OF_STATUS[status];
  return colour ? style(colour, status) : status;
};

const plain = new Intl.NumberFormat('en-US');
export const number = (value: number | null | undefined): string => (value == null ? '–' : plain.format(value));

/** 2026-01-31 14:05 in the local time zone; a dash for no value. */
export function moment(instant: string | null | undefined): string {
  if (!instant) return '–';
  const date = new Date(instant);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function duration(ms: number | null | undefined): string {
  if (ms == null) return '–';
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
