import type { Connect } from '../connectors/contract/connect.ts';
import type { AnyConnector, ConnectorContext, Dataset, Recorder } from '../connectors/contract/connector.ts';
import { ConfigurationError, RetryableError } from '../connectors/contract/errors.ts';
import { parseParameters } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import type { EgressRules } from '../platform/net/egress-rules.ts';
import { recordingFetch } from './recording-fetch.ts';
import { directConnect, tunnelConnect } from './sockets.ts';
import type { KeptSessions, SessionKeeper } from '../platform/net/kept-sessions.ts';
import type { TunnelSettings } from './ssh-tunnel.ts';

/** Everything about an account connector that its context is built from. Plain data, which may go to another process. */
export interface ConnectorSettings {
  type: 'source' | 'destination';
  name: string;
  /** With the secrets. */
  parameters: Record<string, unknown>;
  tunnel: TunnelSettings | null;
  datasets: Dataset[];
  filesRoot: string;
  egress: EgressRules;
  /** Databases and SSH servers may have addresses that are not public. */
  internal: boolean;
  /** Connectors for tests may be used. */
  allow_hidden: boolean;
}

/** What the context calls in the service. */
export interface ConnectorServices
  extends Required<Pick<ConnectorContext<unknown>, 'log' | 'now' | 'warn' | 'rateLimited' | 'rotateSecret'>>,
    Pick<ConnectorContext<unknown>, 'watch' | 'inbox' | 'jobs' | 'known'> {
  recorder: Recorder;
  signal: AbortSignal;
  /** Connections of this account connector are kept here. Not given: no connection outlasts its session. */
  sessions?: { kept: KeptSessions; account_connector_id: string };
  /** Registers work to run when the connector has finished, whether it succeeded or failed. */
  cleanUp(work: () => Promise<void>): void;
  /** Called before the first connection to each host, which waits for it. */
  reach(host: string): Promise<void>;
  /** Throws when no request may be sent any more. */
  beforeSend?(): void;
  /** Receives the host key of an SSH server seen for the first time. */
  pin(fingerprint: string): Promise<void>;
}

export interface BuiltConnector {
  connector: AnyConnector;
  ctx: ConnectorContext<unknown>;
}

/** Finds a connector and builds the context to call it with. @throws ConfigurationError for invalid settings */
export function buildConnector(settings: ConnectorSettings, services: ConnectorServices): BuiltConnector {
  const { filesRoot, datasets } = settings;
  const { signal, log, now, warn, rateLimited, rotateSecret, watch, inbox, jobs, known } = services;
  const connector = findConnector(settings.type, settings.name);
  if (!connector || (connector.hidden && !settings.allow_hidden)) {
    throw new ConfigurationError('unknown_connector', `Unknown connector ${settings.name}`);
  }
  const parsed = parseParameters(connector, settings.parameters);
  if ('problems' in parsed) {
    const [first] = parsed.problems;
    throw new ConfigurationError(first?.code ?? 'invalid_parameter', `${first?.parameter}: ${first?.message}`);
  }
  const network = connector.offline ? NO_NETWORK : networkFor(settings, services);
  const common = { signal, log, now, warn, rateLimited, rotateSecret, watch, inbox, jobs, known };
  return { connector, ctx: { config: parsed.config, ...network, filesRoot, datasets, ...common } };
}

type Network = Pick<ConnectorContext<unknown>, 'fetch' | 'connect' | 'recorder' | 'sessions'>;

/** Guarded access to the network for a connector with these settings. */
export function networkFor(settings: ConnectorSettings, services: ConnectorServices): Network {
  const { recorder, signal, beforeSend } = services;
  const reach = oncePerHost(services.reach);
  return {
    fetch: recordingFetch(recorder, signal, { ...settings.egress, http: true, reach, beforeSend }),
    connect: connectOf(settings, { ...services, reach }),
    // A tunnel ends with its attempt, and the connections in it.
    ...(services.sessions && !settings.tunnel && { sessions: keeperOf(services.sessions, { ...services, reach }) }),
    recorder,
  };
}

function keeperOf(
  { kept, account_connector_id }: NonNullable<ConnectorServices['sessions']>,
  { reach, cleanUp }: Pick<ConnectorServices, 'reach' | 'cleanUp'>,
): SessionKeeper {
  const sessions = kept.of(account_connector_id, (host, port) => reach(`${host}:${port}`));
  cleanUp(() => sessions.settle());
  return sessions;
}

function oncePerHost(reach: ConnectorServices['reach']): ConnectorServices['reach'] {
  const reached = new Map<string, Promise<void>>();
  return (host) => {
    const known = reached.get(host);
    if (known) return known;
    const first = reach(host).catch((error: unknown) => {
      reached.delete(host);
      const message = `The use of the stored secrets for ${host} could not be recorded. Try again`;
      throw new RetryableError('use_not_recorded', message, { cause: error });
    });
    reached.set(host, first);
    return first;
  };
}

/** The catalog promises that an offline connector has no network log. */
const refused = (): never => {
  throw new Error('an offline connector used the network');
};
const NO_NETWORK: Network = {
  fetch: Object.assign(refused, { preconnect: refused }),
  connect: refused,
  recorder: { start: refused },
};

function connectOf({ egress, internal, tunnel }: ConnectorSettings, services: ConnectorServices): Connect {
  const { recorder, signal, pin, reach } = services;
  const rules = { ...egress, internal };
  const route = tunnel
    ? tunnelConnect({ settings: tunnel, rules, recorder, signal, pin })
    : { connect: directConnect(rules, signal) };
  if ('close' in route) services.cleanUp(route.close);
  return async (target) => {
    if (tunnel) await reach(`${tunnel.host}:${tunnel.port}`);
    await reach(`${target.host}:${target.port}`);
    return route.connect(target);
  };
}
