import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { StoredSecret } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import { inboxOf } from './inbox/read-events.ts';
import { type ItemHandler, type JobTime, runConnectorJob } from './run-connector-job.ts';
import type { CallJob, ConnectorCall, ConnectorItem, LockedSecret } from './connector-job.ts';
import { type ConnectorHooks, connectorLog, settingsOf, storeHostKey } from './open-connector.ts';
import { type SecretUse, secretUseRecorder } from './secret-uses.ts';
import { rotateSecret } from './rotate-secret.ts';

export interface CallOptions extends Partial<Pick<ConnectorHooks, 'hostKey' | 'recorder'>>, JobTime, ItemHandler {
  use: SecretUse;
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
  const { ms, cpu_ms, onItem } = options;
  const abort = new AbortController();
  const job = { ...call, settings: await portable(deps, row, options.use), now_ms: deps.now().getTime() };
  const calls = callsOf(deps, row, { ...options, signal: abort.signal });
  try {
    return await runConnectorJob(job, { owner: row.account_id, ms, cpu_ms, calls, onItem });
  } finally {
    // Releases the lock of a secret that the child held when it ended.
    abort.abort(new Error('The call has ended'));
  }
}

/** Without what a connector does not need: the password of the control database. */
async function portable(deps: Deps, row: AccountConnectorRow, use: SecretUse): Promise<CallJob['settings']> {
  const settings = await settingsOf(deps, row, secretUseRecorder(deps, row, use));
  const control = new URL(deps.egress.control);
  control.password = '';
  return { ...settings, egress: { ...settings.egress, control: control.href } };
}

type Secret = StoredSecret & { release(): void; released: Promise<void> };

/** What the child may call here. */
function callsOf(deps: Deps, row: AccountConnectorRow, hooks: CallOptions & { signal: AbortSignal }) {
  const log = connectorLog(deps, row);
  const secrets = new Map<number, Secret>();
  const { signal } = hooks;
  const inbox = inboxOf(deps, row.id);
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
    inboxStanding: inbox.standing,
    readInbox: inbox.read,
    reach: secretUseRecorder(deps, row, hooks.use),
    pin: (fingerprint: string) => storeHostKey(deps, row, { hooks, fingerprint }),
    tunnel: (url: string) => hooks.recorder?.start({ method: 'CONNECT', url }).done({ status: 200 }),
    info: log.info,
    logWarning: log.warn,
  };
}
