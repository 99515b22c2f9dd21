import type { Duplex } from 'node:stream';
import type { Connect, ConnectTarget } from '../connectors/contract/connect.ts';
import type { Recorder } from '../connectors/contract/connector.ts';
import { ConfigurationError, ConnectorError, RetryableError, TimeoutError } from '../connectors/contract/errors.ts';
import { recordedOpening } from '../connectors/contract/recorded-opening.ts';
import { guardedConnect } from '../platform/net/guarded-connect.ts';
import { checkFarEnd, EgressError, type EgressRules } from '../platform/net/egress-rules.ts';
import { SshTunnel, type TunnelSettings } from './ssh-tunnel.ts';

/** A connector has four seconds to release its resources after a stop; the tunnel closes halfway through. */
const CLOSE_AFTER_STOP_MS = 2_000;

/** Connects directly, to addresses that the rules allow. */
export function directConnect(rules: EgressRules, signal: AbortSignal): Connect {
  return async (target) => {
    try {
      return await guardedConnect(target, rules, { timeout_ms: target.timeout_ms, signal: target.signal ?? signal });
    } catch (error) {
      throw error instanceof EgressError ? new ConfigurationError(error.code, error.message) : error;
    }
  };
}

interface TunnelContext {
  settings: TunnelSettings;
  rules: EgressRules;
  recorder: Recorder;
  signal: AbortSignal;
  /** Called after the first login to a server whose host key is not known yet. An error from it fails the login. */
  pin(fingerprint: string): Promise<void>;
}

/**
 * Connects through one SSH tunnel, which the first connection opens and all share. The caller must call `close`; after
 * a stop the tunnel closes by itself within two seconds.
 */
export function tunnelConnect(context: TunnelContext): { connect: Connect; close(): Promise<void> } {
  const { rules, signal } = context;
  let opening: Promise<Opened> | null = null;
  let current: Opened | null = null;
  const close = async () => {
    const opened = await opening?.catch(() => null);
    await opened?.tunnel.close();
  };
  signal.addEventListener('abort', () => setTimeout(() => void close(), CLOSE_AFTER_STOP_MS).unref(), { once: true });
  const open = async (target: ConnectTarget): Promise<Opened> => {
    try {
      current = await openTunnel(context, target);
      return current;
    } catch (error) {
      opening = null;
      throw error;
    }
  };
  const opened = (target: ConnectTarget): Promise<Opened> => {
    if (current?.tunnel.open === false) opening = current = null;
    return (opening ??= open(target));
  };
  const connect: Connect = async (target) => {
    const deadline = performance.now() + target.timeout_ms;
    const { tunnel, jump_address } = await opened(target);
    try {
      await checkFarEnd(target, { jump_address }, rules);
    } catch (error) {
      throw error instanceof EgressError ? new ConfigurationError(error.code, error.message) : error;
    }
    const timeout_ms = deadline - performance.now();
    return tunnel.forward(target, { phase: target.phase, timeout_ms, signal: target.signal ?? signal });
  };
  return { connect, close };
}

interface Opened {
  tunnel: SshTunnel;
  jump_address: string;
}

async function openTunnel(context: TunnelContext, target: ConnectTarget): Promise<Opened> {
  const { settings, rules, recorder, pin } = context;
  const { host, port } = settings;
  const signal = target.signal ?? context.signal;
  const deadline = performance.now() + target.timeout_ms;
  const shown = ({ tunnel }: Opened) => `host key ${tunnel.host_key_fingerprint}`;
  return recordedOpening(recorder, { url: `ssh://${host}:${port}`, shown }, async () => {
    const reach = directConnect(rules, signal);
    const socket = await reach({ ...target, host, port, database: undefined }).catch((error: Error) => {
      throw reachError(error, { host, port, target, signal });
    });
    const jump_address = (socket as Duplex & { remoteAddress?: string }).remoteAddress ?? host;
    const timeout_ms = deadline - performance.now();
    const tunnel = await SshTunnel.open(settings, socket, { phase: target.phase, timeout_ms, signal });
    if (settings.host_key_fingerprint === null) {
      await pin(tunnel.host_key_fingerprint).catch(async (error: unknown) => {
        await tunnel.close();
        throw error;
      });
      settings.host_key_fingerprint = tunnel.host_key_fingerprint;
    }
    return { tunnel, jump_address };
  });
}

function reachError(
  error: Error & { code?: string },
  attempt: { host: string; port: number; target: ConnectTarget; signal: AbortSignal },
): unknown {
  if (attempt.signal.aborted || error instanceof ConnectorError) return error;
  const server = `The SSH server ${attempt.host}:${attempt.port}`;
  if (error.code === 'ETIMEDOUT') return new TimeoutError('ssh_timeout', `${server} did not answer in time`);
  const ErrorClass = attempt.target.phase === 'run' && error.code !== 'ENOTFOUND' ? RetryableError : ConfigurationError;
  return new ErrorClass(
    'ssh_unreachable',
    `${server} cannot be reached (${error.message}). Check the host, the port and its firewall`,
  );
}
