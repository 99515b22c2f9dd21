/** UTC calendar days as `YYYY-MM-DD`, whose order as text is their order in time. */
export interface DaySpan {
  start: string;
  /** Inclusive. */
  end: string;
}

const DAY_MS = 86_400_000;
const text = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** The UTC day of an instant. */
export const utcDay = (at: Date) => text(at.getTime());

export const addDays = (day: string, count: number) => text(Date.parse(day) + count * DAY_MS);

/** Number of days in a span, including both ends; less than 1 if the end is before the start. */
export const daysIn = ({ start, end }: DaySpan) => Math.round((Date.parse(end) - Date.parse(start)) / DAY_MS) + 1;

/** Every day of a span, in order. */
export const eachDay = (span: DaySpan) =>
  Array.from({ length: Math.max(0, daysIn(span)) }, (_, index) => addDays(span.start, index));

/** The first day of a day's month. */
export const monthOf = (day: string) => `${day.slice(0, 7)}-01`;

/** The same day of the month `count` months later, or the last day of a shorter month. */
export function addMonths(day: string, count: number): string {
  const [year, month, date] = day.split('-').map(Number) as [number, number, number];
  const last = new Date(Date.UTC(year, month - 1 + count + 1, 0)).getUTCDate();
  return text(Date.UTC(year, month - 1 + count, Math.min(date, last)));
}

/** The billing period that contains a day. Periods start each month on the anchor's day, or on a shorter month's last. */
export function billingPeriod(anchor: string, day: string): DaySpan {
  const startIn = (months: number) => {
    const first = addMonths(monthOf(day), months);
    return addMonths(`2000-01-${anchor.slice(8)}`, monthsSince2000(first));
  };
  const own = startIn(0);
  const [start, next] = own <= day ? [own, startIn(1)] : [startIn(-1), own];
  return { start, end: addDays(next, -1) };
}

const monthsSince2000 = (day: string) => (Number(day.slice(0, 4)) - 2000) * 12 + Number(day.slice(5, 7)) - 1;

/** The billing period before the one of a day. */
export const billingPeriodBefore = (anchor: string, day: string) =>
  billingPeriod(anchor, addDays(billingPeriod(anchor, day).start, -1));
