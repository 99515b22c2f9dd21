import type { LogicalType, ReadRequest } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { ReadProgress } from '../kits/rest/progress.ts';
import { compareText } from '../kits/rest/rows.ts';
import type { Incremental } from './definition.ts';

const DAY = 86_400_000_000;
const MICROS = { iso: 1, date: DAY, unix: 1_000_000, unix_ms: 1000 };

/** How the values of a cursor are compared and displayed. */
export interface CursorScale {
  /** The form to compare: equal values share it. Null: not a value of this cursor. */
  normal(cell: string): string | null;
  compare(a: string, b: string): number;
  /** The form that users see, which `normal` accepts. */
  shown(normal: string): string;
}

function compareNumbers(a: string, b: string): number {
  if (/^-?\d+$/.test(a) && /^-?\d+$/.test(b)) {
    const [x, y] = [BigInt(a), BigInt(b)];
    return x === y ? 0 : x < y ? -1 : 1;
  }
  return Number(a) - Number(b);
}

export function cursorScale({ type, format }: Incremental, field: LogicalType): CursorScale {
  if (type === 'text') return { normal: (cell) => cell, compare: compareText, shown: (normal) => normal };
  if (type === 'number') {
    return {
      normal: (cell) => (Number.isNaN(Number(cell)) ? null : cell),
      compare: compareNumbers,
      shown: (normal) => normal,
    };
  }
  const unit = format === 'unix_ms' ? 1000 : 1_000_000;
  const micros = (cell: string) => (/^-?\d+(\.\d+)?$/.test(cell) ? Math.round(Number(cell) * unit) : microsOf(cell));
  return {
    normal(cell) {
      const value = micros(cell);
      return Number.isFinite(value) ? timestampText(value) : null;
    },
    compare: compareText,
    shown(normal) {
      if (field === 'date') return normal.slice(0, 10);
      return field === 'integer' || field === 'number' ? String(microsOf(normal) / unit) : normal;
    },
  };
}

/** One part of a read: half-open, in normal form; null: unlimited on that side. */
export interface Slice {
  start: string | null;
  end: string | null;
  is_last: boolean;
}

interface SliceInput {
  incremental: Incremental;
  scale: CursorScale;
  /** `incremental.start`, rendered. */
  first: string | null;
  state: ReadProgress | null;
  window: ReadRequest['window'];
  now: Date;
}

/** The slices of a read, in order. @throws ConfigurationError when a limit is not a value of the cursor */
export function* slicesOf(input: SliceInput): Generator<Slice> {
  const { incremental, scale, first, state, window, now } = input;
  const limit = (text: string | null | undefined, what: string) => (text == null ? null : required(scale, text, what));
  const later = (a: string | null, b: string | null) => (a === null || (b !== null && scale.compare(b, a) > 0) ? b : a);
  if (incremental.type !== 'time') {
    yield { start: state?.cursor ?? limit(first, 'start'), end: null, is_last: true };
    return;
  }
  const from = limit(window?.start ?? first, 'start');
  const reached = state ? resumeFrom(later(state.cursor, state.read_until), state, incremental) : null;
  const start = later(from, reached);
  const end = limit(window?.end, 'end') ?? (incremental.step_days ? timestampText(now.getTime() * 1000) : null);
  if (start !== null && end !== null && start >= end) return;
  if (!incremental.step_days || start === null || end === null) {
    yield { start, end, is_last: true };
    return;
  }
  const last = microsOf(end);
  for (let at = microsOf(start); at < last; ) {
    // All but the first start at midnight.
    const next = Math.min((Math.floor(at / DAY) + incremental.step_days) * DAY, last);
    yield { start: timestampText(at), end: timestampText(next), is_last: next === last };
    at = next;
  }
}

/** Applies the lookback window, but not to a read that was cut short: it has applied it already. */
function resumeFrom(reached: string | null, state: ReadProgress, { look_back_days }: Incremental): string | null {
  if (reached === null || !state.complete || look_back_days === 0) return reached;
  return timestampText(microsOf(reached) - look_back_days * DAY);
}

function required(scale: CursorScale, text: string, what: string): string {
  const normal = scale.normal(text);
  if (normal === null)
    throw new ConfigurationError('invalid_start', `The ${what} "${text}" is not a value of the cursor`);
  return normal;
}

/** A limit in the format of the service. Rounding never narrows the slice. */
export function requestValue(
  normal: string | null,
  side: 'start' | 'end',
  { type, format, end_inclusive }: Incremental,
): string | number | null {
  if (normal === null || type !== 'time') return normal;
  const unit = MICROS[format];
  const micros = microsOf(normal);
  const inclusive = Math.floor((micros - 1) / unit) * unit;
  const rounded =
    side === 'start' ? Math.floor(micros / unit) * unit : end_inclusive ? inclusive : Math.ceil(micros / unit) * unit;
  if (format === 'unix' || format === 'unix_ms') return rounded / unit;
  const text = timestampText(rounded);
  if (format === 'date') return text.slice(0, 10);
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${text.slice(19, 26).replace(/\.?0+$/, '')}Z`;
}
