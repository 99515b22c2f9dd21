import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { ConnectorContext, Recorder } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import { buildConnector, type BuiltConnector, type ConnectorSettings } from './build-connector.ts';
import { filesRootOf } from './files-root.ts';
import { inboxOf } from './inbox/read-events.ts';
import { type SecretUse, secretUseRecorder } from './secret-uses.ts';
import { rotateSecret } from './rotate-secret.ts';
import { readParameters } from './references/read-parameters.ts';
import { pinHostKey, tunnelOf } from './tunnel-settings.ts';

/** Provided by the code that calls the connector. */
export interface ConnectorHooks {
  use: SecretUse;
  recorder: Recorder;
  signal: AbortSignal;
  /** Registers work to run when the connector has finished, whether it succeeded or failed. */
  cleanUp(work: () => Promise<void>): void;
  /** Receives the host key of a server seen for the first time. Without it, the key is stored in the row. */
  hostKey?(fingerprint: string): void;
  warn(code: string, message: string): void;
  rateLimited(until: Date): void;
  watch?: ConnectorContext<unknown>['watch'];
  jobs?: ConnectorContext<unknown>['jobs'];
  /** Connections to databases stay open for the next run. A test of the settings has to log in. */
  keeps_sessions?: boolean;
  /** Called before each HTTP request; throws when none may be sent any more. */
  beforeSend?(): void;
}

/** Finds a row's connector and builds the context to call it with. @throws ConfigurationError for invalid settings */
export async function openConnector(
  deps: Deps,
  row: AccountConnectorRow,
  hooks: ConnectorHooks,
): Promise<BuiltConnector> {
  const reach = secretUseRecorder(deps, row, hooks.use);
  return buildConnector(await settingsOf(deps, row, reach), {
    ...hooks,
    log: connectorLog(deps, row),
    now: deps.now,
    reach,
    ...(hooks.keeps_sessions && { sessions: { kept: deps.sessions, account_connector_id: row.id } }),
    pin: async (fingerprint) => storeHostKey(deps, row, { hooks, fingerprint }),
    rotateSecret: (given, work) => rotateSecret(deps, { row, given, signal: hooks.signal }, work),
    inbox: inboxOf(deps, row.id),
  });
}

/** A row's settings with its secrets. @throws ConfigurationError when they cannot be decrypted, see `readParameters` */
export const settingsOf = async (
  deps: Deps,
  row: AccountConnectorRow,
  reach: (place: string) => Promise<void>,
): Promise<ConnectorSettings> => ({
  type: row.connector_type,
  name: row.connector_name,
  parameters: await readParameters(deps, row, reach),
  tunnel: await tunnelOf(deps, row, reach),
  datasets: row.datasets,
  filesRoot: await filesRootOf(deps, row.account_id),
  egress: deps.egress,
  internal: deps.config.CONNECTOR_NETWORK === 'any',
  allow_hidden: deps.config.TEST_CONNECTORS,
});

export function connectorLog(deps: Deps, row: AccountConnectorRow): ConnectorContext<unknown>['log'] {
  const log = deps.log.child({ account_connector_id: row.id });
  return {
    info: (message, fields) => log.info(fields ?? {}, message),
    warn: (message, fields) => log.warn(fields ?? {}, message),
  };
}

export const storeHostKey = async (
  deps: Deps,
  row: AccountConnectorRow,
  { hooks, fingerprint }: { hooks: Pick<ConnectorHooks, 'hostKey'>; fingerprint: string },
): Promise<void> => (hooks.hostKey ? hooks.hostKey(fingerprint) : pinHostKey(deps, row, fingerprint));
