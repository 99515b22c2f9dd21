import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { CheckResult, PendingRequest, Recorder } from '../connectors/contract/connector.ts';
import { ConfigurationError, ConnectorError, TimeoutError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { createRedactor } from '../platform/redact.ts';
import { type ConnectorHooks, openConnector, secretsOf } from './open-connector.ts';
import { watchTunnel } from './tunnel-check.ts';

export { openParameters, secretsContext } from './open-connector.ts';

const CHECK_MS = 20_000;

const SILENT: PendingRequest = { done: () => {}, failed: () => {} };
/** Checks and discoveries belong to no run, so there is no network log for them. */
const UNRECORDED: Recorder = { start: () => SILENT };

/** `host_key_fingerprint`: of an SSH server that was not known before, for the caller to store. */
export interface TestResult {
  result: CheckResult;
  error: ConnectorError | null;
  host_key_fingerprint: string | null;
}

/** Runs the connector's real check, 20 s at the most. Never throws for what the other side does: it is in `error`. */
export async function testAccountConnector(deps: Deps, row: AccountConnectorRow): Promise<TestResult> {
  const tunnel = watchTunnel();
  let host_key_fingerprint: string | null = null;
  const hostKey = (fingerprint: string) => {
    host_key_fingerprint = fingerprint;
  };
  try {
    const work = ({ connector, ctx }: Opened) => connector.check(ctx);
    const hooks = { ms: CHECK_MS, hostKey, recorder: tunnel.recorder };
    const { checks } = await useConnector(deps, row, hooks, work);
    return { result: { checks: tunnel.steps(null, checks) }, error: null, host_key_fingerprint };
  } catch (thrown) {
    const error = presentable(deps, row, thrown);
    const checks = [{ title: 'Connection', status: 'failed' as const, message: error.message }];
    return { result: { checks: tunnel.steps(error, checks) }, error, host_key_fingerprint };
  }
}

/** Calls one of the connector's `possibleValues`. @throws ConnectorError */
export async function possibleValues(
  deps: Deps,
  row: AccountConnectorRow,
  parameter: string,
): Promise<Record<string, string>> {
  try {
    return await withConnector(deps, row, CHECK_MS, async ({ connector, ctx }) => {
      const ask = connector.possibleValues?.[parameter];
      if (!ask) throw new ConfigurationError('parameter_not_dynamic', `${parameter} has no values to list`);
      return ask(ctx);
    });
  } catch (error) {
    throw presentable(deps, row, error);
  }
}

type Opened = ReturnType<typeof openConnector>;

/**
 * Opens the connector for one piece of work, `ms` at the most; afterwards whatever it left open ends.
 * @throws what the connector throws, TimeoutError `check_timeout`; `presentable` makes it fit for users.
 */
export const withConnector = <Result>(
  deps: Deps,
  row: AccountConnectorRow,
  ms: number,
  work: (opened: Opened) => Promise<Result>,
): Promise<Result> => useConnector(deps, row, { ms }, work);

async function useConnector<Result>(
  deps: Deps,
  row: AccountConnectorRow,
  { ms, hostKey, recorder = UNRECORDED }: { ms: number } & Partial<Pick<ConnectorHooks, 'hostKey' | 'recorder'>>,
  work: (opened: Opened) => Promise<Result>,
): Promise<Result> {
  const abort = new AbortController();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new TimeoutError('check_timeout', `No answer within ${ms / 1000} s`);
    abort.abort(error);
    late.reject(error);
  }, ms);
  const cleanUps: (() => Promise<void>)[] = [];
  const cleanUp = (end: () => Promise<void>) => void cleanUps.push(end);
  const { signal } = abort;
  const hooks = { recorder, signal, cleanUp, hostKey, warn: () => {}, rateLimited: () => {} };
  try {
    return await Promise.race([work(openConnector(deps, row, hooks)), late.promise]);
  } finally {
    clearTimeout(timer);
    abort.abort();
    await Promise.allSettled(cleanUps.map((end) => end()));
  }
}

/** The error without the secrets of the row. */
export function presentable(deps: Deps, row: AccountConnectorRow, thrown: unknown): ConnectorError {
  const redactor = createRedactor(secretsOf(deps, row));
  if (thrown instanceof ConnectorError) {
    thrown.message = redactor.text(thrown.message);
    return thrown;
  }
  deps.log.error({ err: thrown, account_connector_id: row.id }, 'a connector failed in an unforeseen way');
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return new ConnectorError('unexpected_error', redactor.text(text));
}
