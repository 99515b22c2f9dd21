import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { ConnectorError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { EventKind } from '../events/kinds.ts';
import { testAccountConnector, type TestResult } from './account-connector-calls.ts';
import type { SecretUse } from './secret-uses.ts';
import { HostKeyChangedError } from './ssh-tunnel.ts';
import type { StoredTunnel } from './tunnel-settings.ts';

/** Columns that a test, or skipping it, sets. */
export type TestOutcome = Pick<
  AccountConnectorRow,
  'status' | 'status_reason' | 'status_message' | 'failure_streak' | 'last_test' | 'last_tested_at'
> &
  Partial<Pick<AccountConnectorRow, 'ssh_tunnel'>>;

/** Consecutive failures before a working connector counts as broken: a single one may be a network glitch. */
const BROKEN_AFTER = 3;

/** Runs the connector's check. It uses the network, so never call it within a transaction. */
export async function testRow(
  deps: Deps,
  row: AccountConnectorRow,
  actor: SecretUse['actor'],
): Promise<{ outcome: TestOutcome; error: ConnectorError | null; passed: boolean; message: string | null }> {
  const { result, error, host_key_fingerprint } = await testAccountConnector(deps, row, { actor });
  const failed = result.checks.find((check) => check.status === 'failed');
  const passed = !error && !failed;
  const message = error?.message ?? failed?.message ?? failed?.title ?? null;
  const outcome = {
    ...statusAfter(row, { passed, message, code: error?.code ?? 'check_failed', auth: error?.type === 'auth_error' }),
    last_test: { status: passed ? ('passed' as const) : ('failed' as const), checks: result.checks },
    last_tested_at: deps.now().toISOString(),
    ...hostKeysAfter(row, { host_key_fingerprint, error }),
  };
  return { outcome, error, passed, message };
}

/** The SSH host key after a test: the first one presented is stored, a different one is recorded as refused. */
function hostKeysAfter(
  { ssh_tunnel }: Pick<AccountConnectorRow, 'ssh_tunnel'>,
  { host_key_fingerprint, error }: Pick<TestResult, 'host_key_fingerprint' | 'error'>,
): Pick<TestOutcome, 'ssh_tunnel'> {
  const { refused_host_key_fingerprint: before = null, ...tunnel } = (ssh_tunnel ?? {}) as StoredTunnel;
  const refused_host_key_fingerprint = error instanceof HostKeyChangedError ? error.presented : null;
  if (host_key_fingerprint === null && refused_host_key_fingerprint === before) return {};
  const first = host_key_fingerprint !== null && { host_key_fingerprint };
  return { ssh_tunnel: { ...tunnel, ...first, ...(refused_host_key_fingerprint && { refused_host_key_fingerprint }) } };
}

type Status = Pick<AccountConnectorRow, 'status' | 'status_reason' | 'status_message' | 'failure_streak'>;

/** The state after a test (interface decisions 3.7). Pure. */
export function statusAfter(
  before: Pick<AccountConnectorRow, 'status' | 'failure_streak'>,
  test: { passed: boolean; message: string | null; code: string; auth: boolean },
): Status {
  if (test.passed) return { status: 'active', status_reason: null, status_message: null, failure_streak: 0 };
  const failure_streak = before.failure_streak + 1;
  const facts = { status_reason: test.code, status_message: test.message, failure_streak };
  const was = before.status;
  if (test.auth && (was === 'active' || was === 'needs_reauth')) return { status: 'needs_reauth', ...facts };
  if (was === 'active' && failure_streak < BROKEN_AFTER) return { status: 'active', ...facts };
  return { status: 'broken', ...facts };
}

/** The event for a change of status, or null. */
export function transitionEvent(before: AccountConnectorRow['status'] | null, after: string): EventKind | null {
  if (before === after) return null;
  if (after === 'broken') return 'account_connector_broken';
  if (after === 'needs_reauth') return 'account_connector_reauth_required';
  return after === 'active' && before !== null ? 'account_connector_authenticated' : null;
}
