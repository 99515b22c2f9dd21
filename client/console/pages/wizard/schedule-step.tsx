import { Section } from '../../parts/page.tsx';
import { ScheduleFields } from '../../schedule/schedule-fields.tsx';
import { SchedulePreview, useSchedulePreview } from '../../schedule/schedule-preview.tsx';
import type { DraftState } from './draft.ts';

/** When it runs; what that means is asked of the service while one types. */
export function ScheduleStep({ draft }: { draft: DraftState }) {
  const { schedule } = draft.draft;
  const { problem } = useSchedulePreview(schedule);
  return (
    <Section title="When it runs" lead="It can be run by hand at any time as well.">
      <div className="stack">
        <ScheduleFields
          value={schedule}
          onChange={(changed) => draft.set({ schedule: changed })}
          problems={problem && schedule.type === 'cron' ? { cron_expression: problem } : {}}
        />
        <SchedulePreview schedule={schedule} />
      </div>
    </Section>
  );
}
