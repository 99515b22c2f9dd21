import type { RouterOutputs } from '../../api.ts';
import { Bars } from '../../components/bars.tsx';
import { compact, count, dayOf, plural } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';

type Days = RouterOutputs['overview']['activity'];

export function ActivityCharts({ days }: { days: Days }) {
  const rows = days.reduce((sum, day) => sum + day.rows_loaded, 0);
  const failed = days.reduce((sum, day) => sum + day.runs_failed, 0);
  return (
    <div className="columns">
      <Section title="Rows loaded per day" lead={`${count(rows)} in ${days.length} days, by UTC day`}>
        <Bars
          label="Rows loaded per day"
          format={compact}
          bars={days.map(({ day, rows_loaded }) => ({
            key: day,
            label: dayOf(day),
            title: `${dayOf(day)}: ${plural(rows_loaded, 'row')}`,
            parts: [{ value: rows_loaded, tone: 'accent' }],
          }))}
        />
      </Section>
      <Section title="Runs per day" lead={failed === 0 ? 'No failures' : `${plural(failed, 'run')} failed, or in part`}>
        <Bars
          label="Runs per day, by how they ended"
          format={compact}
          bars={days.map(({ day, runs_succeeded, runs_failed, runs_other }) => ({
            key: day,
            label: dayOf(day),
            title: `${dayOf(day)}: ${runs_succeeded} succeeded, ${runs_failed} failed, ${runs_other} other`,
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
