import type { CheckResult, PendingRequest, Recorder } from '../connectors/contract/connector.ts';
import type { ConnectorError } from '../connectors/contract/errors.ts';
import { fixOf } from '../connectors/contract/fixes.ts';

type Checks = CheckResult['checks'];

/** A request that leaves no entry. */
export const SILENT: PendingRequest = { done: () => {}, failed: () => {} };
const TITLE = 'SSH tunnel';

/**
 * Reports the SSH tunnel as a separate step of a test: when it passes, the fault is at the database. The test must use
 * `recorder`, which keeps no log because tests belong to no run.
 */
export function watchTunnel() {
  let server: string | null = null;
  const recorder: Recorder = {
    start: ({ url }) => {
      if (!url.startsWith('ssh://')) return SILENT;
      const done = () => {
        server = url.slice('ssh://'.length);
      };
      return { ...SILENT, done };
    },
  };
  const steps = (error: ConnectorError | null, checks: Checks): Checks => {
    if (error && /^(ssh_|invalid_ssh_key$)/.test(error.code)) {
      const skipped = checks.map(({ title }) => ({ title, status: 'skipped' as const, message: null }));
      return [{ title: TITLE, status: 'failed', message: error.message, ...fixOf(error) }, ...skipped];
    }
    return server === null
      ? checks
      : [{ title: TITLE, status: 'passed', message: `Logged in to ${server}` }, ...checks];
  };
  return { recorder, steps };
}
