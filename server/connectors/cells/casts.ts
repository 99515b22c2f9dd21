import type { LogicalType } from '../contract/stream.ts';

/**
 * What writing the values of one type as another does to them. `exact`: nothing. `checked`: a value that is not of the
 * type is refused, any other is exact. `lossy`: some values would lose digits or parts; these are refused, or counted
 * where the connection allows it. `impossible`: the types have nothing in common.
 */
export type Cast = 'exact' | 'checked' | 'lossy' | 'impossible';

/** A type as its values see it. Absent limits: none. */
export interface ValueType {
  type: LogicalType;
  /** Decimal digits before and behind the point. */
  digits?: { whole: number; scale: number };
  /** A binary fraction. */
  float?: 'single' | 'double';
  /** Digits of a second. */
  places?: number;
  /** Characters. Databases refuse a longer text, but cut blanks at its end without a word. */
  length?: number;
  /** Blanks at the end do not count: `pads` adds them up to the length, `trims` removes them. */
  blanks?: 'pads' | 'trims';
}

/** By source, then by destination. What is not listed is impossible; a type is exact as itself. */
const CASTS: Record<LogicalType, Partial<Record<LogicalType, Cast>>> = {
  string: {
    integer: 'checked',
    number: 'checked',
    date: 'checked',
    time: 'checked',
    timestamp: 'checked',
    timestamp_tz: 'checked',
  },
  integer: { number: 'exact', string: 'exact' },
  number: { integer: 'lossy', string: 'exact' },
  boolean: { string: 'exact' },
  date: { timestamp: 'exact', string: 'exact' },
  timestamp: { date: 'lossy', string: 'exact' },
  timestamp_tz: { timestamp: 'exact', date: 'lossy', string: 'exact' },
  time: { string: 'exact' },
  json: { string: 'exact' },
  array: { json: 'checked', string: 'exact' },
  binary: { string: 'exact' },
};

/** Digits of a decimal number that every binary fraction of the size keeps. */
const FLOAT_DIGITS = { single: 6, double: 15 } as const;
export const MICROSECONDS = 6;

/** What a value has to have for a narrower type to hold it. */
export type Limit = { scale: number } | { float: 'single' | 'double' } | { places: number } | { length: number };

/** The one table of casts: `destination_type`, columns that exist, and every writer go by it. Pure. */
export function castBetween(from: ValueType, to: ValueType): Cast {
  const cast = from.type === to.type ? 'exact' : (CASTS[from.type][to.type] ?? 'impossible');
  return cast !== 'impossible' && limitsBetween(from, to).length > 0 ? 'lossy' : cast;
}

/** The same by logical types alone: whether a user may choose the second one as `destination_type`. Pure. */
export const canBeWrittenAs = (from: LogicalType, to: LogicalType): boolean => {
  const cast = castBetween({ type: from }, { type: to });
  return cast === 'exact' || cast === 'checked';
};

/** What the second type holds of the first only in part. Empty: all of it. Pure. */
export const limitsBetween = (from: ValueType, to: ValueType): Limit[] => [
  ...digitLimits(from, to),
  ...(keepsPlaces(from, to) ? [] : [{ places: to.places ?? MICROSECONDS }]),
  ...(keepsBlanks(from, to) ? [] : [{ length: to.blanks === 'trims' ? 0 : (to.length ?? Infinity) }]),
];

function digitLimits(from: ValueType, to: ValueType): Limit[] {
  if (to.type !== 'number' || !NUMBERS.has(from.type)) return [];
  const { whole = Infinity, scale = from.type === 'integer' ? 0 : Infinity } = from.digits ?? {};
  const limits: Limit[] = [];
  if (to.digits && scale > to.digits.scale) limits.push({ scale: to.digits.scale });
  if (!to.float) return limits;
  const kept = from.float ? from.float === to.float || to.float === 'double' : whole + scale <= FLOAT_DIGITS[to.float];
  return kept ? limits : [...limits, { float: to.float }];
}

/** Only texts end with blanks. */
const keepsBlanks = (from: ValueType, to: ValueType): boolean =>
  from.type !== 'string' ||
  to.type !== 'string' ||
  from.blanks !== undefined ||
  (to.blanks !== 'trims' && (from.length ?? Infinity) <= (to.length ?? Infinity));

const NUMBERS: ReadonlySet<LogicalType> = new Set(['integer', 'number', 'string']);
const WITH_PLACES: ReadonlySet<LogicalType> = new Set(['time', 'timestamp', 'timestamp_tz']);

const keepsPlaces = (from: ValueType, to: ValueType): boolean =>
  !WITH_PLACES.has(to.type) || from.type === 'date' || (from.places ?? MICROSECONDS) <= (to.places ?? MICROSECONDS);
