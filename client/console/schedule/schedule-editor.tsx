import { type Schedule, ScheduleFields } from './schedule-fields.tsx';
import { SchedulePreview, useSchedulePreview } from './schedule-preview.tsx';

/** Fields of a schedule, with a live preview of its description and next runs. */
export function ScheduleEditor({ value, onChange }: { value: Schedule; onChange: (value: Schedule) => void }) {
  const { problem } = useSchedulePreview(value);
  return (
    <div className="stack">
      <ScheduleFields
        value={value}
        onChange={onChange}
        problems={problem && value.type === 'cron' ? { cron_expression: problem } : {}}
      />
      <SchedulePreview schedule={value} />
    </div>
  );
}
