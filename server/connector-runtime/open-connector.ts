import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { Connect } from '../connectors/contract/connect.ts';
import type { AnyConnector, ConnectorContext, Recorder } from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { parseParameters } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import type { Deps } from '../deps.ts';
import { openParameters, withOpened } from './connector-secrets.ts';
import { filesRootOf } from './files-root.ts';
import { directConnect, tunnelConnect } from './sockets.ts';
import { recordingFetch } from './recording-fetch.ts';
import { rotateSecret } from './rotate-secret.ts';
import { pinHostKey, tunnelOf } from './tunnel-settings.ts';

/** Provided by the code that calls the connector. */
export interface ConnectorHooks {
  recorder: Recorder;
  signal: AbortSignal;
  /** Registers work to run when the connector has finished, whether it succeeded or failed. */
  cleanUp(work: () => Promise<void>): void;
  /** Receives the host key of a server seen for the first time. Without it, the key is stored in the row. */
  hostKey?(fingerprint: string): void;
  warn(code: string, message: string): void;
  rateLimited(until: Date): void;
  /** Called before each HTTP request; throws when none may be sent any more. */
  beforeSend?(): void;
}

/** Finds a row's connector and builds the context to call it with. @throws ConfigurationError for invalid settings */
export async function openConnector(
  deps: Deps,
  row: AccountConnectorRow,
  hooks: ConnectorHooks,
): Promise<{ connector: AnyConnector; ctx: ConnectorContext<unknown> }> {
  const connector = findConnector(row.connector_type, row.connector_name);
  if (!connector || (connector.hidden && !deps.config.TEST_CONNECTORS)) {
    throw new ConfigurationError('unknown_connector', `Unknown connector ${row.connector_name}`);
  }
  const parsed = parseParameters(
    connector,
    withOpened(() => openParameters(deps, row)),
  );
  if ('problems' in parsed) {
    const [first] = parsed.problems;
    throw new ConfigurationError(first?.code ?? 'invalid_parameter', `${first?.parameter}: ${first?.message}`);
  }
  const log = deps.log.child({ account_connector_id: row.id });
  const filesRoot = await filesRootOf(deps, row.account_id);
  return {
    connector,
    ctx: {
      config: parsed.config,
      ...(connector.offline ? NO_NETWORK : networkOf(deps, row, hooks)),
      log: {
        info: (message, fields) => log.info(fields ?? {}, message),
        warn: (message, fields) => log.warn(fields ?? {}, message),
      },
      now: deps.now,
      signal: hooks.signal,
      filesRoot,
      datasets: row.datasets,
      warn: hooks.warn,
      rateLimited: hooks.rateLimited,
      rotateSecret: (given, work) => rotateSecret(deps, { row, given, signal: hooks.signal }, work),
    },
  };
}

type Network = Pick<ConnectorContext<unknown>, 'fetch' | 'connect' | 'recorder'>;

const networkOf = (deps: Deps, row: AccountConnectorRow, hooks: ConnectorHooks): Network => ({
  fetch: recordingFetch(hooks.recorder, hooks.signal, {
    ...deps.egress,
    http: true,
    beforeSend: hooks.beforeSend,
  }),
  connect: connectOf(deps, row, hooks),
  recorder: hooks.recorder,
});

/** The catalog promises that an offline connector has no network log. */
const refused = (): never => {
  throw new Error('an offline connector used the network');
};
const NO_NETWORK: Network = {
  fetch: Object.assign(refused, { preconnect: refused }),
  connect: refused,
  recorder: { start: refused },
};

function connectOf(deps: Deps, row: AccountConnectorRow, hooks: ConnectorHooks): Connect {
  const rules = { ...deps.egress, internal: deps.config.CONNECTOR_NETWORK === 'any' };
  const settings = withOpened(() => tunnelOf(deps, row));
  if (!settings) return directConnect(rules, hooks.signal);
  const pin = async (fingerprint: string) =>
    hooks.hostKey ? hooks.hostKey(fingerprint) : pinHostKey(deps, row, fingerprint);
  const { connect, close } = tunnelConnect({ settings, rules, recorder: hooks.recorder, signal: hooks.signal, pin });
  hooks.cleanUp(close);
  return connect;
}
