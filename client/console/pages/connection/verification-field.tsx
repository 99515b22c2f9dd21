import { Select } from '@mantine/core';
import type { RouterInputs } from '../../api.ts';
import type { Connection } from '../../answers.ts';

type Given = RouterInputs['connections']['update']['verification_schedule'];

const NEVER = { value: '', label: 'Only on request' };
const INTERVALS = [
  { value: '360', label: 'Every 6 hours' },
  { value: '720', label: 'Every 12 hours' },
  { value: '1440', label: 'Every day' },
];
const OTHER = 'other';

interface VerificationFieldProps {
  /** As edited; undefined: as stored. */
  value: Given;
  stored: Connection['verification_schedule'];
  problem: string | null;
  onChange: (value: Given) => void;
}

/** How often all streams are compared with their tables. Other schedules come from the command line or the API. */
export function VerificationField({ value, stored, problem, onChange }: VerificationFieldProps) {
  const chosen = optionOf(value === undefined ? stored : value);
  const other = { value: OTHER, label: stored?.description ?? 'Another schedule' };
  return (
    <Select
      label="Verification"
      description="Compares all streams with their tables"
      data={[NEVER, ...INTERVALS, ...(chosen === OTHER ? [other] : [])]}
      allowDeselect={false}
      value={chosen}
      error={problem}
      onChange={(minutes) => {
        if (minutes === OTHER) return;
        onChange(minutes ? { type: 'interval', interval_minutes: Number(minutes) as 360 | 720 | 1440 } : null);
      }}
    />
  );
}

function optionOf(schedule: Given | Connection['verification_schedule']): string {
  if (!schedule || schedule.type === 'manual') return NEVER.value;
  const interval = schedule.time_of_day ? undefined : String(schedule.interval_minutes);
  return INTERVALS.find((option) => option.value === interval)?.value ?? OTHER;
}
