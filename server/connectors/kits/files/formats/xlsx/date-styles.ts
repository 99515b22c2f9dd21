/** What the format of a cell shows of its number. `elapsed`: a duration, such as `[h]:mm`. */
export type NumberStyle = 'number' | 'date' | 'datetime' | 'time' | 'elapsed';

/** Formats that workbooks do not describe, by number. ECMA-376, 18.8.30. */
const BUILT_IN: Record<number, NumberStyle> = {
  14: 'date',
  15: 'date',
  16: 'date',
  17: 'date',
  18: 'time',
  19: 'time',
  20: 'time',
  21: 'time',
  22: 'datetime',
  45: 'time',
  46: 'elapsed',
  47: 'time',
};
/** Formats of East Asian languages, all of dates. */
const EAST_ASIAN = [
  [27, 31],
  [50, 58],
] as const;

/** @param code the format in the workbook, if it describes it */
export function numberStyle(id: number, code: string | undefined): NumberStyle {
  if (code !== undefined) return styleOf(code);
  if (EAST_ASIAN.some(([from, to]) => id >= from && id <= to)) return 'date';
  return BUILT_IN[id] ?? 'number';
}

function styleOf(code: string): NumberStyle {
  // Only the first section, for positive numbers, counts. Texts, colors and conditions are no parts of a date.
  const [first = ''] = code.replaceAll(/"[^"]*"|\\.|_.|\*./g, '').split(';');
  if (/\[[hms]+\]/i.test(first)) return 'elapsed';
  const parts = first.replaceAll(/\[[^\]]*\]/g, '').replaceAll(/am\/pm|a\/p/gi, 'h');
  if (/general/i.test(parts)) return 'number';
  const hasTime = /[hs]/i.test(parts);
  const hasDate = /[dy]/i.test(parts) || (/m/i.test(parts) && !hasTime) || /^[^\d#?]*e/i.test(parts);
  if (hasDate) return hasTime ? 'datetime' : 'date';
  return hasTime ? 'time' : 'number';
}

const DAY_MS = 86_400_000;
/** Day 60 of the calendar from 1900 is 29 February 1900, which did not exist. */
const FIRST_EXACT_DAY = 61;
const EPOCH_1900 = Date.UTC(1899, 11, 30);
const EPOCH_1904 = Date.UTC(1904, 0, 1);
const LAST_DAY = 2_958_465;

/**
 * The day and time of a serial number, rounded to milliseconds, of which it has no more. Null if it is none.
 * @returns the type that holds it exactly, and its text
 */
export function momentOf(
  serial: number,
  style: NumberStyle,
  from1904: boolean,
): { type: 'date' | 'timestamp' | 'time'; text: string } | null {
  const ms = Math.round(serial * DAY_MS);
  if (style === 'time' && ms >= 0 && ms < DAY_MS) return { type: 'time', text: textAt(ms).slice(11) };
  const day = Math.floor(ms / DAY_MS);
  const isDay = from1904 ? day >= 0 : day >= 1 && day !== FIRST_EXACT_DAY - 1;
  if (!isDay || day > LAST_DAY || style === 'number' || style === 'elapsed') return null;
  const early = !from1904 && day < FIRST_EXACT_DAY ? DAY_MS : 0;
  const text = textAt(ms + early + (from1904 ? EPOCH_1904 : EPOCH_1900));
  return style === 'date' && ms % DAY_MS === 0
    ? { type: 'date', text: text.slice(0, 10) }
    : { type: 'timestamp', text };
}

/** `2026-01-31 23:59:59.5` */
function textAt(ms: number): string {
  const text = new Date(ms).toISOString().replace('T', ' ');
  return text.replace(/\.?0*Z$/, '');
}
