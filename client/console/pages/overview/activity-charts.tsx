import type { RouterOutputs } from '../../api.ts';
import { Bars } from '../../components/bars.tsx';
import { formatCompact, formatDay, pluralize } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';

type Days = RouterOutputs['overview']['activity'];

export function ActivityCharts({ days }: { days: Days }) {
  const rows = days.reduce((sum, day) => sum + day.rows_loaded, 0);
  const failed = days.reduce((sum, day) => sum + day.runs_failed, 0);
  return (
    <div className="columns">
      <Section title="Rows loaded per day" lead={`${pluralize(rows, 'row')} in ${days.length} days (UTC)`}>
        <Bars
          label="Rows loaded per day"
          format={formatCompact}
          bars={days.map(({ day, rows_loaded }) => ({
            key: day,
            label: formatDay(day),
            title: `${formatDay(day)}: ${pluralize(rows_loaded, 'row')}`,
            parts: [{ value: rows_loaded, tone: 'accent' }],
          }))}
        />
      </Section>
      <Section
        title="Runs per day"
        lead={failed === 0 ? 'No failures' : `${pluralize(failed, 'run')} failed or partially succeeded`}
      >
        <Bars
          label="Runs per day, by result"
          format={formatCompact}
          bars={days.map(({ day, runs_succeeded, runs_failed, runs_other }) => ({
            key: day,
            label: formatDay(day),
            title: `${formatDay(day)}: ${runs_succeeded} succeeded, ${runs_failed} failed, ${runs_other} other`,
            parts: [
              { value: runs_succeeded, tone: 'good' },
              { value: runs_failed, tone: 'bad' },
              { value: runs_other, tone: 'calm' },
            ],
          }))}
        />
      </Section>
    </div>
  );
}
