import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDebouncedValue } from '@mantine/hooks';
import { isApiError } from '../../api.ts';
import { trpc } from '../api.ts';
import { Icon } from '../components/icon.tsx';
import type { Schedule } from './schedule-fields.tsx';

const PAUSE_MS = 350;

/** What a schedule would mean: in words, and when it comes next, in its own zone. */
export function SchedulePreview({ schedule }: { schedule: Schedule }) {
  const { preview, problem } = useSchedulePreview(schedule);
  const zone = schedule.timezone ?? 'UTC';
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  });
  return (
    <div className="schedule-preview" role="status">
      <p>
        <Icon name={problem ? 'alert' : 'clock'} size={16} /> <b>{problem ?? preview?.description ?? '…'}</b>
      </p>
      {!problem && preview && preview.next_runs.length > 0 && (
        <ol>
          {preview.next_runs.map((tick) => (
            <li key={tick}>
              <time dateTime={tick}>{format.format(new Date(tick))}</time>
            </li>
          ))}
          <li className="dimmed">{zone}</li>
        </ol>
      )}
    </div>
  );
}

/** The service's word on a schedule, after a pause in typing. `problem`: why it cannot be. */
export function useSchedulePreview(schedule: Schedule) {
  const [settled] = useDebouncedValue(JSON.stringify(schedule), PAUSE_MS);
  const asked = useQuery(
    trpc.connections.previewSchedule.queryOptions(
      { schedule: JSON.parse(settled) as Schedule },
      { placeholderData: keepPreviousData, retry: false, staleTime: 30_000 },
    ),
  );
  const error = asked.error && isApiError(asked.error) ? asked.error : null;
  return {
    preview: asked.data,
    problem: error && error.code !== 'network_error' ? error.message : null,
    isSettled: settled === JSON.stringify(schedule) && !asked.isFetching,
  };
}
