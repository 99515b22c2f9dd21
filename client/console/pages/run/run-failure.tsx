import { Alert, Button } from '@mantine/core';
import { Link } from 'wouter';
import type { RouterOutputs } from '../../api.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Icon } from '../../components/icon.tsx';
import { labelOf, wordsOf } from '../../components/status.tsx';
import type { RunProgress } from './use-run-progress.ts';

/** What to do about each type of error. */
const ADVICE: Record<string, string> = {
  config_error: 'Check the settings of the connection and of the connector at fault.',
  auth_error: 'The credentials were rejected. Update them, test the connector, then retry the run.',
  rate_limited: 'The API limits the request rate. The next run continues from the last checkpoint.',
  schema_changed: 'The schema of the source has changed. Review the changes, then retry the run.',
  transient_error: 'The error may be temporary. Retry the run: committed rows are kept and not loaded twice.',
  timeout: 'The system did not respond in time. Check its load, or increase the timeout.',
  plan_limit: 'The plan limit has been reached. See the usage page.',
  system_error: 'The service itself failed. Search its log for the ID of the run.',
};

/** Of data that the side cannot read or load, which connectors report as a system error. */
const DATA_ADVICE = {
  source: 'The data cannot be read. Correct it, or change the settings of the source to match it, then retry the run.',
  destination:
    'A row cannot be loaded. Correct it at the source, or change its table, then retry the run. To load the other rows, set Rejected rows in the settings of the connection.',
};

const TUNNEL_ADVICE = 'The SSH tunnel failed, not the database. Open the connector and test it to see what to do.';

interface RunFailureProps extends Pick<RunProgress, 'run'> {
  /** Undefined while it loads. Needed for the link to the connector at fault. */
  connection: RouterOutputs['connections']['get'] | undefined;
}

/** The error of a run: its origin, what to do, and a link to where. */
export function RunFailure({ run, connection }: RunFailureProps) {
  const { error } = run;
  if (!error) return null;
  const side = sideOfData(error);
  const advice = error.code.startsWith('ssh_') ? TUNNEL_ADVICE : side ? DATA_ADVICE[side] : ADVICE[error.type];
  const fix = connection && fixFor(error, connection);
  return (
    <Alert
      className="failure"
      color="red"
      icon={<Icon name="alert" />}
      title={error.stream_name ? `${error.stream_name}: ${error.message}` : error.message}
    >
      {advice && <p>{advice}</p>}
      <p className="failure-codes">
        Code <code>{error.code}</code> · {side ? 'Data error' : labelOf(error.type)} ({wordsOf(error.origin)}) ·{' '}
        {error.retryable ? 'Temporary, will be retried' : 'Will not be retried'}
      </p>
      <div className="row">
        {fix && (
          <Button component={Link} href={fix.href} size="xs" variant="default">
            {fix.label}
          </Button>
        )}
        <CopyButton
          label="Copy error"
          text={[error.message, `code ${error.code}`, `run ${run.id}`, location.href].join('\n')}
        />
      </div>
      {error.internal_message && (
        <details className="fold">
          <summary>Details for administrators</summary>
          <pre className="code-block">{error.internal_message}</pre>
        </details>
      )}
    </Alert>
  );
}

type RunError = NonNullable<RunProgress['run']['error']>;

const UNKNOWN = new Set(['unexpected_error', 'server_error']);

/** Null: the error is not about the data of a side. */
const sideOfData = ({ code, type, origin }: RunError) =>
  type === 'system_error' && !UNKNOWN.has(code) && (origin === 'source' || origin === 'destination') ? origin : null;

/** The page where the error can be fixed, if there is one. */
function fixFor(error: RunError, { id, source, destination }: RouterOutputs['connections']['get']) {
  const { type, origin } = error;
  if (sideOfData(error) === 'destination')
    return { label: 'Open settings', href: `/console/connections/${id}?tab=settings` };
  if (type === 'schema_changed') return { label: 'Review changes', href: `/console/connections/${id}?tab=changes` };
  if (type === 'plan_limit') return { label: 'View usage', href: '/console/usage' };
  if (origin === 'source') return { label: `Open ${source.name}`, href: `/console/sources/${source.id}` };
  if (origin === 'destination')
    return { label: `Open ${destination.name}`, href: `/console/destinations/${destination.id}` };
  return undefined;
}
