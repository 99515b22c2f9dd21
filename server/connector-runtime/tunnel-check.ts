import type { CheckResult, PendingRequest, Recorder } from '../connectors/contract/connector.ts';
import type { ConnectorError } from '../connectors/contract/errors.ts';

type Checks = CheckResult['checks'];

const SILENT: PendingRequest = { done: () => {}, failed: () => {} };
const TITLE = 'SSH tunnel';

/**
 * The SSH tunnel as a step of its own in a test: whoever sees that it stands looks for the fault at the database.
 * `recorder` is the one to test with; it keeps no log, as tests belong to no run.
 */
export function watchTunnel() {
  let opened: string | null = null;
  const recorder: Recorder = {
    start: ({ url }) => {
      if (!url.startsWith('ssh://')) return SILENT;
      const done = () => {
        opened = url.slice('ssh://'.length);
      };
      return { ...SILENT, done };
    },
  };
  const steps = (error: ConnectorError | null, checks: Checks): Checks => {
    if (error && /^(ssh_|invalid_ssh_key$)/.test(error.code)) {
      const skipped = checks.map(({ title }) => ({ title, status: 'skipped' as const, message: null }));
      return [{ title: TITLE, status: 'failed', message: error.message }, ...skipped];
    }
    return opened === null
      ? checks
      : [{ title: TITLE, status: 'passed', message: `Logged in at ${opened}` }, ...checks];
  };
  return { recorder, steps };
}
