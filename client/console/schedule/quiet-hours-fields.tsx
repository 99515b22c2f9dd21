import { Select, TextInput } from '@mantine/core';
import type { RouterOutputs } from '../api.ts';

type QuietHours = RouterOutputs['users']['me']['notification_preferences'];
type Severity = NonNullable<QuietHours['urgent_severity']>;

const URGENT: { value: Severity | ''; label: string }[] = [
  { value: 'critical', label: 'Critical' },
  { value: 'high', label: 'High and critical' },
  { value: 'warning', label: 'Warning and above' },
  { value: '', label: 'Nothing' },
];

/** Quiet hours, of the account or of a person. */
export const QuietHoursFields = (props: { value: QuietHours; onChange: (change: Partial<QuietHours>) => void }) => {
  const { quiet_from, quiet_until, urgent_severity } = props.value;
  return (
    <>
      <TimeOfDay label="Quiet from" value={quiet_from} onChange={(time) => props.onChange({ quiet_from: time })} />
      <TimeOfDay label="Quiet until" value={quiet_until} onChange={(time) => props.onChange({ quiet_until: time })} />
      <Select
        label="Sent during quiet hours"
        data={URGENT}
        allowDeselect={false}
        value={urgent_severity ?? ''}
        onChange={(value) => props.onChange({ urgent_severity: value || null })}
      />
    </>
  );
};

export const TimeOfDay = (props: { label: string; value: string | null; onChange: (time: string | null) => void }) => (
  <TextInput
    label={props.label}
    type="time"
    value={props.value ?? ''}
    onChange={(event) => props.onChange(event.currentTarget.value || null)}
  />
);
