import { join } from 'node:path';
import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { StoredSecret } from '../connectors/contract/connector.ts';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  DataError,
  FencedError,
  RateLimitedError,
  RetryableError,
  SchemaChangedError,
  TimeoutError,
} from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { LimitPassed, ProcessDied } from '../platform/limited-process/limited-process.ts';
import { errorFrom, type ErrorMessage } from '../platform/limited-process/messages.ts';
import { PoolBusy, ProcessPool } from '../platform/limited-process/process-pool.ts';
import type { ConnectorCall, ConnectorItem, ConnectorJob, LockedSecret } from './connector-job.ts';
import { type ConnectorHooks, connectorLog, settingsOf, storeHostKey } from './open-connector.ts';
import { rotateSecret } from './rotate-secret.ts';
import { HostKeyChangedError } from './ssh-tunnel.ts';

const MEMORY_MB = 1024;
const ERRORS = [
  HostKeyChangedError,
  AuthenticationError,
  ConfigurationError,
  DataError,
  FencedError,
  RateLimitedError,
  RetryableError,
  SchemaChangedError,
  TimeoutError,
  ConnectorError,
];

const pool = new ProcessPool<ConnectorJob, ConnectorItem>(join(import.meta.dir, 'connector-process.ts'), {
  size: 4,
  size_per_owner: 3,
});

export interface CallOptions extends Partial<Pick<ConnectorHooks, 'hostKey' | 'recorder'>> {
  ms: number;
  cpu_ms: number;
}

/**
 * Calls a connector in a child process with limits of time, processor and memory, so that nothing a user configures stops
 * this process. @throws what the connector throws; pass it through `presentable` before users see it
 */
export async function callConnector(
  deps: Deps,
  row: AccountConnectorRow,
  call: ConnectorCall,
  options: CallOptions,
): Promise<ConnectorItem[]> {
  const { ms, cpu_ms } = options;
  const abort = new AbortController();
  const job = { ...call, settings: await portable(deps, row), now_ms: deps.now().getTime() };
  const calls = callsOf(deps, row, { ...options, signal: abort.signal });
  const items: ConnectorItem[] = [];
  try {
    const running = { owner: row.account_id, limits: { ms, cpu_ms, memory_mb: MEMORY_MB }, calls, errorOf };
    for await (const item of pool.run(job, running)) items.push(item);
    return items;
  } catch (error) {
    throw limitError(error, options);
  } finally {
    // Releases the lock of a secret that the child held when it ended.
    abort.abort(new Error('The call has ended'));
  }
}

/** Without what a connector does not need: the password of the control database. */
async function portable(deps: Deps, row: AccountConnectorRow): Promise<ConnectorJob['settings']> {
  const settings = await settingsOf(deps, row);
  const control = new URL(deps.egress.control);
  control.password = '';
  return { ...settings, egress: { ...settings.egress, control: control.href } };
}

function errorOf(message: ErrorMessage): Error {
  const error = errorFrom(message, ERRORS);
  if (error instanceof RateLimitedError) Object.assign(error, { until: new Date(error.until) });
  return error;
}

function limitError(error: unknown, { ms, cpu_ms }: CallOptions): unknown {
  if (error instanceof PoolBusy) {
    return new RetryableError('service_busy', 'Too many tests and discoveries are running. Try again in a moment');
  }
  if (error instanceof ProcessDied) {
    return new RetryableError('process_ended', 'The process of the connector ended unexpectedly. Try again', {
      cause: error,
    });
  }
  if (!(error instanceof LimitPassed)) return error;
  if (error.limit === 'time') return new TimeoutError('check_timeout', `No response within ${ms / 1000} s`);
  const [what, advice] =
    error.limit === 'cpu'
      ? [`${cpu_ms / 1000} s of processor time`, 'Simplify its queries and templates']
      : [`${MEMORY_MB} MB of memory`, 'Let its queries and requests return less at once'];
  return new ConfigurationError(`${error.limit}_limit_exceeded`, `The connector used more than ${what}. ${advice}`);
}

type Secret = StoredSecret & { release(): void; released: Promise<void> };

/** What the child may call here. */
function callsOf(deps: Deps, row: AccountConnectorRow, hooks: CallOptions & { signal: AbortSignal }) {
  const log = connectorLog(deps, row);
  const secrets = new Map<number, Secret>();
  const { signal } = hooks;
  const lockSecret = (given: string): Promise<LockedSecret> => {
    const locked = Promise.withResolvers<LockedSecret>();
    const work = async (stored: StoredSecret) => {
      const released = Promise.withResolvers<void>();
      const lock = secrets.size;
      secrets.set(lock, { ...stored, release: released.resolve, released: released.promise });
      signal.addEventListener('abort', () => released.resolve(), { once: true });
      locked.resolve({ lock, current: stored.current });
      await released.promise;
    };
    rotateSecret(deps, { row, given, signal }, work).catch(locked.reject);
    return locked.promise;
  };
  return {
    lockSecret,
    replaceSecret: (lock: number, used: string, replacement: string) => secrets.get(lock)?.replace(used, replacement),
    unlockSecret: (lock: number) => secrets.get(lock)?.release(),
    pin: (fingerprint: string) => storeHostKey(deps, row, { hooks, fingerprint }),
    tunnel: (url: string) => hooks.recorder?.start({ method: 'CONNECT', url }).done({ status: 200 }),
    info: log.info,
    logWarning: log.warn,
  };
}
