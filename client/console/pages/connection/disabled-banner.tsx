import { Alert, Button } from '@mantine/core';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { labelOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import type { Connection } from '../../answers.ts';

interface Explanation {
  text: string;
  nextStep: (connection: Connection) => { label: string; href: string } | 'resume';
}

const reviewChanges = ({ id }: Connection) => ({
  label: 'Review changes',
  href: `/console/connections/${id}?tab=changes`,
});

/** Why the service disabled a connection, and the step that resumes it. */
const REASONS: Record<string, Explanation> = {
  breaking_schema_change: {
    text: 'A stream or field that this connection loads was removed or changed at the source. Review the schema changes to resume.',
    nextStep: reviewChanges,
  },
  schema_change_policy: {
    text: 'The schema of the source changed, and the schema change policy disables the connection. Review the changes to resume.',
    nextStep: reviewChanges,
  },
  too_many_failures: {
    text: 'Its last runs failed repeatedly. Fix the error that they report, then resume the connection.',
    nextStep: () => 'resume',
  },
  account_connector_broken: {
    text: 'Its source or destination has been unreachable for days. Test both, then resume the connection.',
    nextStep: () => 'resume',
  },
};

/** Explains why a connection is locked or disabled, and offers the next step. */
export function DisabledBanner({ connection, isReviewing }: { connection: Connection; isReviewing: boolean }) {
  const { id, status, status_reason } = connection;
  const mayUpdate = usePermission('connections.update');
  const resume = useAction(trpc.connections.update, { done: 'Connection resumed', failed: 'Connection not resumed' });
  if (status === 'locked') {
    return (
      <Alert color="yellow" icon={<Icon name="alert" />} title="This connection is locked">
        <p>
          {status_reason ? `${labelOf(status_reason)}. ` : ''}
          <Link href="/console/usage">View usage</Link> to see what your plan has left.
        </p>
      </Alert>
    );
  }
  if (status !== 'auto_disabled') return null;
  const { text, nextStep } = REASONS[status_reason ?? ''] ?? {
    text: status_reason ? labelOf(status_reason) : 'The service disabled this connection.',
    nextStep: () => 'resume' as const,
  };
  const step = nextStep(connection);
  return (
    <Alert color="red" icon={<Icon name="alert" />} title="This connection is disabled">
      <div className="stack">
        <p>{text}</p>
        {step === 'resume' && (
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
        {step !== 'resume' && !isReviewing && (
          <Button className="fit" variant="default" component={Link} href={step.href}>
            {step.label}
          </Button>
        )}
      </div>
    </Alert>
  );
}
