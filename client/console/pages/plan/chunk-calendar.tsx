import { dayOf } from '../../components/format.ts';
import { wordsOf } from '../../components/status.tsx';
import type { Plan } from './plan.tsx';

export type Chunk = Plan['chunks'][number];

interface ChunkCalendarProps {
  chunks: Chunk[];
  /** Chunks that were taken out, by index. */
  left: ReadonlySet<number>;
  toggle?: (index: number) => void;
  /** Of a chunk that was launched: how its run is. */
  toneOf?: (index: number) => string | undefined;
}

const DAY_MS = 86_400_000;
/** A window of ten years is told by its table. */
const MAX_MONTHS = 36;
const month = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const at = (day: string) => Date.parse(`${day}T00:00:00Z`);
const isoDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

export const spanOf = ({ start_date, end_date }: Pick<Chunk, 'start_date' | 'end_date'>): string => {
  if (start_date === null || end_date === null) return 'All days';
  return start_date === end_date ? dayOf(start_date) : `${dayOf(start_date)} – ${dayOf(end_date)}`;
};

/** The days of each chunk in months: neighbours in two shades, what is skipped is pale. The table below says it in words. */
export function ChunkCalendar({ chunks, left, toggle, toneOf }: ChunkCalendarProps) {
  const dated = chunks.filter(({ start_date, end_date }) => start_date !== null && end_date !== null);
  if (dated.length === 0) return null;
  const chunkOf = new Map<string, { chunk: Chunk; shade: number }>();
  for (const [shade, chunk] of dated.toSorted((a, b) => a.index - b.index).entries()) {
    for (let day = at(chunk.start_date!); day <= at(chunk.end_date!); day += DAY_MS) {
      chunkOf.set(isoDay(day), { chunk, shade: shade % 2 });
    }
  }
  const months = [...new Set([...chunkOf.keys()].toSorted().map((day) => day.slice(0, 7)))];
  if (months.length > MAX_MONTHS) {
    return <p className="dimmed">{months.length} months are too many for a calendar; the table has them all.</p>;
  }
  return (
    <div className="calendar" aria-hidden="true">
      {months.map((one) => (
        <div key={one} className="month">
          <b>{month.format(at(`${one}-01`))}</b>
          <div className="days">
            {daysOf(one).map((day, index) => {
              const found = day === null ? undefined : chunkOf.get(day);
              return day === null ? (
                // Before the first of the month.
                // oxlint-disable-next-line react/no-array-index-key
                <i key={`before-${index}`} />
              ) : (
                <i
                  key={day}
                  data-day={day}
                  data-shade={found?.shade}
                  data-state={found && stateOf(found.chunk, left)}
                  data-tone={found && toneOf?.(found.chunk.index)}
                  title={found && `${dayOf(day)}: chunk ${found.chunk.index + 1}, ${saidOf(found.chunk, left)}`}
                  onClick={found?.chunk.action === 'run' && toggle ? () => toggle(found.chunk.index) : undefined}
                >
                  {Number(day.slice(8))}
                </i>
              );
            })}
          </div>
        </div>
      ))}
    </div>
  );
}

const stateOf = (chunk: Chunk, left: ReadonlySet<number>) =>
  chunk.action === 'skip' ? 'skip' : left.has(chunk.index) ? 'left' : 'run';

export const saidOf = (chunk: Chunk, left: ReadonlySet<number>): string =>
  chunk.action === 'skip'
    ? `skipped: ${wordsOf(chunk.skip_reason ?? '')}`
    : left.has(chunk.index)
      ? 'taken out'
      : 'will be loaded';

/** The days of a month `2026-01`, after as many nulls as there are weekdays before its first; weeks begin on Monday. */
function daysOf(of: string): (string | null)[] {
  const first = at(`${of}-01`);
  const before = (new Date(first).getUTCDay() + 6) % 7;
  const days: (string | null)[] = Array.from({ length: before }, () => null);
  for (let day = first; isoDay(day).startsWith(of); day += DAY_MS) days.push(isoDay(day));
  return days;
}
