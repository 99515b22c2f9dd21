import type { Duplex } from 'node:stream';

/** What to connect to, and under which conditions. */
export interface ConnectTarget {
  host: string;
  port: number;
  /** PostgreSQL only: distinguishes another database on the control database's server from the control database. */
  database?: string;
  /** A refused connection means wrong settings during setup, but a restarting server during a run: they worked before. */
  phase: 'setup' | 'run';
  /** Limit in milliseconds for the whole attempt, including the tunnel. */
  timeout_ms: number;
  /** Aborts the attempt. Default: the signal of the context. Cleanup after an abort needs another one. */
  signal?: AbortSignal;
}

/**
 * Checks the address and opens a connection to it, through the account connector's SSH tunnel if it has one. The caller
 * closes the connection and handles its errors.
 * @throws ConnectorError for the tunnel or for an address that is not allowed; otherwise the system's error with its
 * `code`, or the reason of the signal
 */
export type Connect = (target: ConnectTarget) => Promise<Duplex>;

/**
 * Adapts a connected stream for drivers that expect an unconnected TCP socket: `connect` only reports success. `host` is
 * the name that certificates are verified against; for a stream that is not a TCP socket it would be `localhost`.
 */
export function connectedSocket(socket: Duplex, host: string): Duplex {
  const same = () => socket;
  return Object.assign(socket, {
    _host: host,
    connect() {
      queueMicrotask(() => socket.emit('connect'));
      return socket;
    },
    setNoDelay: same,
    setKeepAlive: same,
    ref: same,
    unref: same,
  });
}
