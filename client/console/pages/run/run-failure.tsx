import { Alert, Button } from '@mantine/core';
import { Link } from 'wouter';
import type { RouterOutputs } from '../../api.ts';
import { Icon } from '../../components/icon.tsx';
import { wordsOf } from '../../components/status.tsx';
import type { RunProgress } from './use-run-progress.ts';

/** What can be done about each class of error. */
const ADVICE: Record<string, string> = {
  config_error: 'Look at the settings of the connection and of the side that is named.',
  auth_error: 'The credentials were refused: renew them at the source or destination, test it, and run again.',
  rate_limited: 'The other side asked for patience. The next run goes on from the last checkpoint.',
  schema_changed: 'The source has other fields than before: review them at the connection, under "Schema changes".',
  transient_error: 'It may have passed: run again. What was committed stays and is not loaded twice.',
  timeout: 'The other side did not answer in time: look whether it is well, or allow it more time.',
  plan_limit: 'The plan has come to its limit: see Usage.',
  system_error: "The service itself failed. Its log tells more, under the run's id.",
};

const TUNNEL_ADVICE = 'It is the SSH tunnel, not the database: test it on its page, which tells what to do.';

interface RunFailureProps extends Pick<RunProgress, 'run'> {
  /** Once it is known: then there is a way to what is at fault. */
  connection: RouterOutputs['connections']['get'] | undefined;
}

/** The error of a run, explained: whose it is, what it means, what to do, and where. */
export function RunFailure({ run, connection }: RunFailureProps) {
  const { error } = run;
  if (!error) return null;
  const advice = error.code.startsWith('ssh_') ? TUNNEL_ADVICE : ADVICE[error.type];
  const way = connection && wayTo(error, connection);
  return (
    <Alert
      color="red"
      icon={<Icon name="alert" />}
      title={error.stream_name ? `${error.stream_name}: ${error.message}` : error.message}
    >
      {advice && <p>{advice}</p>}
      <p className="failure-codes">
        Code <code>{error.code}</code> · {wordsOf(error.type)} at the {error.origin} ·{' '}
        {error.retryable ? 'may pass by itself' : 'does not pass by itself'}
      </p>
      {way && (
        <Button component={Link} href={way.href} size="xs" variant="default">
          {way.label}
        </Button>
      )}
      {error.internal_message && (
        <details className="fold">
          <summary>For administrators</summary>
          <pre className="code-block">{error.internal_message}</pre>
        </details>
      )}
    </Alert>
  );
}

type RunError = NonNullable<RunProgress['run']['error']>;

/** Where the fault is put right; undefined: on no page of its own. */
function wayTo({ type, origin }: RunError, { id, source, destination }: RouterOutputs['connections']['get']) {
  if (type === 'schema_changed') return { label: 'Review the changes', href: `/console/connections/${id}?tab=changes` };
  if (type === 'plan_limit') return { label: 'Look at the usage', href: '/console/usage' };
  if (origin === 'source') return { label: `Open ${source.name}`, href: `/console/sources/${source.id}` };
  if (origin === 'destination')
    return { label: `Open ${destination.name}`, href: `/console/destinations/${destination.id}` };
  return undefined;
}
