import { formatDay } from '../../components/format.ts';
import { wordsOf } from '../../components/status.tsx';
import type { CustomRunPlan } from '../../answers.ts';

export type Chunk = CustomRunPlan['chunks'][number];

interface ChunkCalendarProps {
  chunks: Chunk[];
  /** Indexes of the excluded chunks. */
  excluded: ReadonlySet<number>;
  toggle?: (index: number) => void;
  /** Colour of a chunk that runs or has run. */
  toneOf?: (index: number) => string | undefined;
}

const DAY_MS = 86_400_000;
const MAX_MONTHS = 36;
const month = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const at = (day: string) => Date.parse(`${day}T00:00:00Z`);
const isoDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

export const formatWindow = ({ start_date, end_date }: Pick<Chunk, 'start_date' | 'end_date'>): string => {
  if (start_date === null || end_date === null) return 'All dates';
  return start_date === end_date ? formatDay(start_date) : `${formatDay(start_date)} – ${formatDay(end_date)}`;
};

/** The days of the chunks on a calendar, neighbours in alternating shades. The table below has the same as text. */
export function ChunkCalendar({ chunks, excluded, toggle, toneOf }: ChunkCalendarProps) {
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
    return <p className="dimmed">The calendar shows up to {MAX_MONTHS} months. The table lists every chunk.</p>;
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
                // Filler before the first of the month.
                // oxlint-disable-next-line react/no-array-index-key
                <i key={`before-${index}`} />
              ) : (
                <i
                  key={day}
                  data-day={day}
                  data-shade={found?.shade}
                  data-state={found && stateOf(found.chunk, excluded)}
                  data-tone={found && toneOf?.(found.chunk.index)}
                  title={
                    found &&
                    `${formatDay(day)}: chunk ${found.chunk.index + 1}, ${describeChunk(found.chunk, excluded)}`
                  }
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

const stateOf = (chunk: Chunk, excluded: ReadonlySet<number>) =>
  chunk.action === 'skip' ? 'skip' : excluded.has(chunk.index) ? 'excluded' : 'run';

export const describeChunk = (chunk: Chunk, excluded: ReadonlySet<number>): string =>
  chunk.action === 'skip'
    ? `skipped, ${wordsOf(chunk.skip_reason ?? '')}`
    : excluded.has(chunk.index)
      ? 'excluded'
      : 'to be loaded';

/** The days of a month `2026-01`, with a null for each weekday before its first. Weeks start on Monday. */
function daysOf(yearMonth: string): (string | null)[] {
  const first = at(`${yearMonth}-01`);
  const before = (new Date(first).getUTCDay() + 6) % 7;
  const days: (string | null)[] = Array.from({ length: before }, () => null);
  for (let day = first; isoDay(day).startsWith(yearMonth); day += DAY_MS) days.push(isoDay(day));
  return days;
}
