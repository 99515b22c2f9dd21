const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof CODES;
export type Style = (colour: Colour, text: string) => string;

/** Marks the colours of this program. Names that contain escape sequences cannot know it. */
const MARK = String(crypto.getRandomValues(new Uint32Array(1))[0]);

export const styleOf =
  (colours: boolean): Style =>
  (colour, text) =>
    colours && text !== '' ? `\u001b[${CODES[colour]};${MARK}m${text}\u001b[0;${MARK}m` : text;

/** What a terminal could execute: control characters except line feed and tab, and changes of the text direction. */
// oxlint-disable-next-line no-control-regex -- these are what is replaced
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const OWN_COLOUR = new RegExp(`\\\\u001b\\[(\\d+);${MARK}m`, 'g');

/**
 * The text for a terminal. Everything that could control it, such as an escape sequence in a name, is shown as the
 * escaped form of JSON, so that JSON stays the same.
 */
export const printable = (text: string): string =>
  text
    .replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replace(OWN_COLOUR, '\u001b[$1m');

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
/** 1 row, 2 rows */
export const plural = (value: number | null, noun: string): string =>
  `${number(value)} ${noun}${value === 1 ? '' : 's'}`;

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
