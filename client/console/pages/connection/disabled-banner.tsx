import { Alert, Button } from '@mantine/core';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { wordsOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import type { Connection } from './connection.tsx';

interface Told {
  why: string;
  what: (connection: Connection) => { label: string; href: string } | 'resume';
}

const changes = ({ id }: Connection) => ({
  label: 'Review the changes',
  href: `/console/connections/${id}?tab=changes`,
});

/** Why the service took a connection off its schedule, and what brings it back. */
const REASONS: Record<string, Told> = {
  breaking_schema_change: {
    why: 'The source has lost something that this connection loads. It runs again once the changes are reviewed.',
    what: changes,
  },
  schema_change_policy: {
    why: 'The source has changed, and this connection is set to stop then. It runs again after a review.',
    what: changes,
  },
  too_many_failures: {
    why: 'It failed time after time. Put right what its last runs tell, then resume it.',
    what: () => 'resume',
  },
  account_connector_broken: {
    why: 'Its source or destination has not answered for days. Test both, then resume it.',
    what: () => 'resume',
  },
};

/** Of a connection that does not run by itself although nobody paused it. */
export function DisabledBanner({ connection, isReviewing }: { connection: Connection; isReviewing: boolean }) {
  const { id, status, status_reason } = connection;
  const mayUpdate = useMay('connections.update');
  const resume = useAction(trpc.connections.update, { done: 'The connection was resumed' });
  if (status === 'locked') {
    return (
      <Alert color="yellow" icon={<Icon name="alert" />} title="Locked by the plan">
        <p>
          {status_reason ? `${wordsOf(status_reason)}: ` : ''}
          <Link href="/console/usage">Usage</Link> tells what the plan has left.
        </p>
      </Alert>
    );
  }
  if (status !== 'auto_disabled') return null;
  const { why, what } = REASONS[status_reason ?? ''] ?? {
    why: wordsOf(status_reason ?? 'The service has disabled it.'),
    what: () => 'resume' as const,
  };
  const way = what(connection);
  return (
    <Alert color="red" icon={<Icon name="alert" />} title="This connection is disabled">
      <div className="stack">
        <p>{why}</p>
        {way === 'resume' && (
          <Button
            className="fit"
            variant="default"
            disabled={!mayUpdate}
            loading={resume.isPending}
            onClick={() => resume.mutate({ connection_id: id, status: 'active' })}
          >
            Resume
          </Button>
        )}
        {way !== 'resume' && !isReviewing && (
          <Button className="fit" variant="default" component={Link} href={way.href}>
            {way.label}
          </Button>
        )}
      </div>
    </Alert>
  );
}
