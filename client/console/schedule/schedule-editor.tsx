import { type Schedule, ScheduleFields } from './schedule-fields.tsx';
import { SchedulePreview, useSchedulePreview } from './schedule-preview.tsx';

/** A schedule, and what it means while one types: in words, and when it comes next. */
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
