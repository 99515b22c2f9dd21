import type { LogicalType, ReadRequest, StreamState } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { Incremental } from './definition.ts';

const DAY = 86_400_000_000;
const MICROS = { iso: 1, date: DAY, unix: 1_000_000, unix_ms: 1000 };

/** How the values of a cursor are ordered, shown and asked for. */
export interface CursorScale {
  /** The form that equal values share and that `compare` takes; null when the cell is no such value. */
  normal(cell: string): string | null;
  compare(a: string, b: string): number;
  /** As users see it and `normal` takes it again. */
  shown(normal: string): string;
}

const byText = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);

function byNumber(a: string, b: string): number {
  if (/^-?\d+$/.test(a) && /^-?\d+$/.test(b)) {
    const [x, y] = [BigInt(a), BigInt(b)];
    return x === y ? 0 : x < y ? -1 : 1;
  }
  return Number(a) - Number(b);
}

export function cursorScale({ type, format }: Incremental, field: LogicalType): CursorScale {
  if (type === 'text') return { normal: (cell) => cell, compare: byText, shown: (normal) => normal };
  if (type === 'number') {
    return {
      normal: (cell) => (Number.isNaN(Number(cell)) ? null : cell),
      compare: byNumber,
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
    compare: byText,
    shown(normal) {
      if (field === 'date') return normal.slice(0, 10);
      return field === 'integer' || field === 'number' ? String(microsOf(normal) / unit) : normal;
    },
  };
}

/** What one sequence of pages is asked for: half-open, in normal form; null: no limit on that side. */
export interface Slice {
  start: string | null;
  end: string | null;
  is_last: boolean;
}

/** Where an earlier read got to: `read_until` may be ahead of the last record. `complete`: to its end. */
export interface ReadState extends StreamState {
  boundary: string[];
  read_until: string | null;
  complete: boolean;
}

interface SpanInput {
  incremental: Incremental;
  scale: CursorScale;
  /** `incremental.start`, rendered. */
  first: string | null;
  state: ReadState | null;
  window: ReadRequest['window'];
  now: Date;
}

/** The parts of a read, in order. @throws ConfigurationError when a date is none */
export function* slicesOf(input: SpanInput): Generator<Slice> {
  const { incremental, scale, first, state, window, now } = input;
  const limit = (text: string | null | undefined, what: string) => (text == null ? null : required(scale, text, what));
  const later = (a: string | null, b: string | null) => (a === null || (b !== null && scale.compare(b, a) > 0) ? b : a);
  if (incremental.type !== 'time') {
    yield { start: state?.cursor ?? limit(first, 'start'), end: null, is_last: true };
    return;
  }
  const from = limit(window?.start ?? first, 'start');
  const reached = state ? lookBack(later(state.cursor, state.read_until), state, incremental) : null;
  const start = later(from, reached);
  const end = limit(window?.end, 'end') ?? (incremental.step_days ? timestampText(now.getTime() * 1000) : null);
  if (start !== null && end !== null && start >= end) return;
  if (!incremental.step_days || start === null || end === null) {
    yield { start, end, is_last: true };
    return;
  }
  const last = microsOf(end);
  for (let at = microsOf(start); at < last; ) {
    // All but the first begin at midnight.
    const next = Math.min((Math.floor(at / DAY) + incremental.step_days) * DAY, last);
    yield { start: timestampText(at), end: timestampText(next), is_last: next === last };
    at = next;
  }
}

/** Only a read that came to its end is looked back from: what a crash cut short has looked back already. */
function lookBack(reached: string | null, state: ReadState, { look_back_days }: Incremental): string | null {
  if (reached === null || !state.complete || look_back_days === 0) return reached;
  return timestampText(microsOf(reached) - look_back_days * DAY);
}

function required(scale: CursorScale, text: string, what: string): string {
  const normal = scale.normal(text);
  if (normal === null) throw new ConfigurationError('invalid_start', `"${text}" is no ${what} for a cursor`);
  return normal;
}

/** A limit as the service wants it: never later than the start is, never earlier than the end. */
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
