import { SegmentedControl, Select, Text, TextInput } from '@mantine/core';
import type { RouterInputs } from '../api.ts';

export type Schedule = NonNullable<RouterInputs['connections']['update']['schedule']>;

const INTERVALS: [minutes: number, label: string][] = [
  [5, 'Every 5 minutes'],
  [15, 'Every 15 minutes'],
  [30, 'Every 30 minutes'],
  [60, 'Every hour'],
  [120, 'Every 2 hours'],
  [180, 'Every 3 hours'],
  [360, 'Every 6 hours'],
  [480, 'Every 8 hours'],
  [720, 'Every 12 hours'],
  [1440, 'Every day'],
];
const DAY_MINUTES = 1440;

const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const ZONES = [...new Set(['UTC', localZone, ...Intl.supportedValuesOf('timeZone')])];

interface ScheduleFieldsProps {
  value: Schedule;
  onChange: (value: Schedule) => void;
  /** Errors of the service, by field. */
  problems?: Partial<Record<keyof Schedule, string>>;
}

/** When a connection runs. Switching the type clears the fields of the other types. */
export function ScheduleFields({ value, onChange, problems = {} }: ScheduleFieldsProps) {
  const { type, interval_minutes, cron_expression, time_of_day, timezone } = value;
  const kind = type === 'interval' && time_of_day ? 'daily' : type;
  const selectType = (next: string) => {
    const isDaily = next === 'daily';
    onChange({
      type: (isDaily ? 'interval' : next) as Schedule['type'],
      interval_minutes: isDaily ? DAY_MINUTES : next === 'interval' ? 60 : null,
      cron_expression: next === 'cron' ? (cron_expression ?? '0 6 * * *') : null,
      time_of_day: isDaily ? '06:00' : null,
      timezone,
    });
  };
  return (
    <div className="stack">
      <SegmentedControl
        aria-label="Schedule type"
        data={[
          { value: 'manual', label: 'Manual' },
          { value: 'interval', label: 'Interval' },
          { value: 'daily', label: 'Daily' },
          { value: 'cron', label: 'Cron' },
          { value: 'continuous', label: 'Continuous' },
        ]}
        value={kind}
        onChange={selectType}
      />
      {type === 'continuous' && (
        <Text size="sm" c="dimmed">
          Follows the change log of the source. Needs change data capture (CDC) and a PostgreSQL destination.
        </Text>
      )}
      {type !== 'manual' && type !== 'continuous' && (
        <div className="fields">
          {kind === 'interval' && (
            <Select
              label="Frequency"
              data={INTERVALS.map(([minutes, label]) => ({ value: String(minutes), label }))}
              value={String(interval_minutes)}
              error={problems.interval_minutes}
              onChange={(minutes) => {
                const interval = Number(minutes) as NonNullable<Schedule['interval_minutes']>;
                onChange({ ...value, interval_minutes: interval, time_of_day: null });
              }}
            />
          )}
          {kind === 'daily' && (
            <TextInput
              label="Time"
              type="time"
              value={time_of_day ?? ''}
              error={problems.time_of_day}
              onChange={(event) => onChange({ ...value, time_of_day: event.currentTarget.value || '00:00' })}
            />
          )}
          {type === 'cron' && (
            <TextInput
              label="Cron expression"
              description="Minute, hour, day, month, weekday"
              classNames={{ input: 'mono' }}
              value={cron_expression ?? ''}
              error={problems.cron_expression}
              onChange={(event) => onChange({ ...value, cron_expression: event.currentTarget.value })}
            />
          )}
          <Select
            label="Time zone"
            data={ZONES}
            searchable
            limit={50}
            value={timezone ?? 'UTC'}
            error={problems.timezone}
            onChange={(zone) => onChange({ ...value, timezone: zone ?? 'UTC' })}
          />
        </div>
      )}
    </div>
  );
}
