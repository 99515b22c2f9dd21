import { Alert } from '@mantine/core';
import { Link } from 'wouter';
import { Icon } from '../../components/icon.tsx';
import type { Connection } from '../../answers.ts';

/** Why nothing was loaded the last time, although the connection is active. */
export function SkippedBanner({ connection }: { connection: Connection }) {
  const { status, active_run_id, last_run, source, destination } = connection;
  const isWaiting = status === 'active' && active_run_id === null && last_run?.status === 'skipped';
  if (!isWaiting || !last_run.error) return null;
  return (
    <Alert color="yellow" icon={<Icon name="alert" />} title="The last run was skipped">
      <p>
        {last_run.error.message}.{' '}
        {source.status !== 'active' && <Link href={`/console/sources/${source.id}`}>Open source</Link>}{' '}
        {destination.status !== 'active' && (
          <Link href={`/console/destinations/${destination.id}`}>Open destination</Link>
        )}
      </p>
    </Alert>
  );
}
