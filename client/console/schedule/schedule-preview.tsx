import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDebouncedValue } from '@mantine/hooks';
import { isApiError } from '../../api.ts';
import { trpc } from '../api.ts';
import { Icon } from '../components/icon.tsx';
import type { Schedule } from './schedule-fields.tsx';

const DEBOUNCE_MS = 350;

/** A schedule in words, with its next runs in its own time zone. */
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
          {preview.next_runs.map((run_at) => (
            <li key={run_at}>
              <time dateTime={run_at}>{format.format(new Date(run_at))}</time>
            </li>
          ))}
          <li className="dimmed">{zone}</li>
        </ol>
      )}
    </div>
  );
}

/** The service's preview of a schedule, after a pause in typing. `problem` says why it is invalid. */
export function useSchedulePreview(schedule: Schedule) {
  const [settled] = useDebouncedValue(JSON.stringify(schedule), DEBOUNCE_MS);
  const query = useQuery(
    trpc.connections.previewSchedule.queryOptions(
      { schedule: JSON.parse(settled) as Schedule },
      { placeholderData: keepPreviousData, retry: false, staleTime: 30_000 },
    ),
  );
  const error = query.error && isApiError(query.error) ? query.error : null;
  return {
    preview: query.data,
    problem: error && error.code !== 'network_error' ? error.message : null,
    isSettled: settled === JSON.stringify(schedule) && !query.isFetching,
  };
}
