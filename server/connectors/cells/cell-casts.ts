import { arrayJson, elementJson } from './array-text.ts';
import { castBetween, type Limit, limitsBetween, type ValueType } from './casts.ts';
import { hasScale, isFloat, nearestFloat, numberText, roundToScale, wholeText } from './decimals.ts';
import { isBigint } from './normalizers.ts';
import { dateText, type Instant, instantText, type ParsedTime, parseTime, roundedTo } from './timestamp-text.ts';
import { type DeclaredType, valueType } from './value-types.ts';

/** Changes the cells of one type to those of another. */
export interface CellCast {
  /** The same value as the destination takes it; undefined: it has no such value. */
  exact(cell: string): string | undefined;
  /** The nearest value that the destination has; undefined: none is near. */
  nearest(cell: string): string | undefined;
}

/**
 * The cast of one column, value by value. Null: every cell can be written as it is, so that bytes may pass through.
 * `impossible` casts are null as well: the database decides.
 */
export function cellCast(from: DeclaredType, to: ValueType): CellCast | null {
  const source = valueType(from);
  if (castBetween(source, to) === 'impossible') return null;
  const steps = [typeStep(from, to), ...limitsBetween(source, to).map(limitStep(to))].filter((step) => step !== null);
  return steps.length === 0 ? null : steps.reduce(inOrder);
}

const inOrder = (first: CellCast, second: CellCast): CellCast => ({
  exact(cell) {
    const value = first.exact(cell);
    return value === undefined ? undefined : second.exact(value);
  },
  nearest(cell) {
    const value = first.exact(cell) ?? first.nearest(cell);
    return value === undefined ? undefined : (second.exact(value) ?? second.nearest(value));
  },
});

const strict = (exact: CellCast['exact']): CellCast => ({ exact, nearest: () => undefined });

function typeStep(from: DeclaredType, to: ValueType): CellCast | null {
  if (from.type === to.type) return null;
  switch (to.type) {
    case 'integer':
      return WHOLE;
    case 'number':
      return from.type === 'string' ? strict(numberText) : null;
    case 'date':
      return DATE;
    case 'timestamp':
      return from.type === 'date' ? null : from.type === 'timestamp_tz' ? IN_UTC : LOCAL;
    case 'timestamp_tz':
      return ZONED;
    case 'time':
      return strict(timeOfDay);
    case 'json':
      return from.dialect === 'postgres' ? strict(jsonOfArray(from.source_type ?? '')) : null;
    default:
      return null;
  }
}

const bigintOrNone = (text: string | undefined) => (text !== undefined && isBigint(text) ? text : undefined);
const WHOLE: CellCast = {
  exact: (cell) => (isBigint(cell) ? cell : bigintOrNone(wholeText(cell))),
  nearest: (cell) => bigintOrNone(roundToScale(cell.trim(), 0)),
};

const DATE: CellCast = {
  exact(cell) {
    const time = parseTime(cell.trim());
    const isMidnight = typeof time?.at === 'string' || (time?.at.micros === 0 && !time.finer);
    return isMidnight ? finite(time, ({ day }) => dateText(day)) : undefined;
  },
  nearest: (cell) => finite(parseTime(cell.trim()), ({ day }) => dateText(day)),
};

const finite = (time: ParsedTime | null, text: (at: Instant) => string): string | undefined =>
  time === null ? undefined : typeof time.at === 'string' ? time.at : text(time.at);
const localText = (at: Instant) => instantText(at, '');

const IN_UTC: CellCast = {
  exact: (cell) => (cell.endsWith('+00') ? cell.slice(0, -3) : finite(parseTime(cell), localText)),
  nearest: () => undefined,
};

/** A text with a zone is not a local time: without the zone it would be another moment. */
const LOCAL: CellCast = {
  exact(cell) {
    const time = parseTime(cell.trim());
    return time?.finer || (time?.hasZone && typeof time.at !== 'string') ? undefined : finite(time, localText);
  },
  nearest: (cell) => finite(parseTime(cell.trim()), localText),
};

const ZONED: CellCast = {
  exact(cell) {
    const time = parseTime(cell.trim());
    return time?.finer ? undefined : finite(time, (at) => instantText(at));
  },
  nearest: (cell) => finite(parseTime(cell.trim()), (at) => instantText(at)),
};

const TIME_OF_DAY = /^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?$/;
function timeOfDay(cell: string): string | undefined {
  const text = cell.trim();
  if (!TIME_OF_DAY.test(text)) return undefined;
  return text.length === 5 ? `${text}:00` : text;
}

function jsonOfArray(source_type: string): CellCast['exact'] {
  const element = elementJson(source_type);
  return (cell) => arrayJson(cell, element) ?? undefined;
}

const limitStep =
  (to: ValueType) =>
  (limit: Limit): CellCast => {
    if ('scale' in limit) {
      const { scale } = limit;
      return {
        exact: (cell) => (hasScale(cell, scale) ? cell : undefined),
        nearest: (cell) => roundToScale(cell, scale),
      };
    }
    if ('float' in limit) {
      const { float } = limit;
      return {
        exact: (cell) => (isFloat(cell, float) ? cell : undefined),
        nearest: (cell) => nearestFloat(cell, float),
      };
    }
    if ('length' in limit) return blanksStep(limit.length);
    return placesStep(to, limit.places);
  };

/** The destination itself refuses other characters behind the length. */
function blanksStep(length: number): CellCast {
  const kept = (cell: string) => {
    if (!cell.endsWith(' ') || cell.length <= length) return cell;
    let end = cell.length;
    while (cell[end - 1] === ' ') end -= 1;
    // A character outside the first plane has two units.
    let places = length - Array.from(cell.slice(0, end)).length;
    while (end < cell.length && places > 0) [end, places] = [end + 1, places - 1];
    return cell.slice(0, end);
  };
  return { exact: (cell) => (kept(cell) === cell ? cell : undefined), nearest: kept };
}

/** `12:00:00.120` has two. */
function hasPlaces(cell: string, places: number): boolean {
  const point = cell.indexOf('.');
  if (point < 0) return true;
  let last = point;
  for (let at = point + 1; at < cell.length; at += 1) {
    const digit = cell.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) break;
    if (digit > 0) last = at;
  }
  return last - point <= places;
}

function placesStep({ type }: ValueType, places: number): CellCast {
  return {
    exact: (cell) => (hasPlaces(cell, places) ? cell : undefined),
    nearest(cell) {
      const at = parseTime(type === 'time' ? `1970-01-01 ${cell}` : cell)?.at;
      if (at === undefined || typeof at === 'string') return at;
      const rounded = roundedTo(at, places);
      if (type !== 'time') return instantText(rounded, type === 'timestamp' ? '' : '+00');
      // The last moment of a day has no next one of the same day.
      return rounded.day === 0 ? instantText(rounded, '').slice(11) : undefined;
    },
  };
}
