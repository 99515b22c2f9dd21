import type { Duplex } from 'node:stream';

/** Where a connector wants a connection to, and in which circumstances. */
export interface ConnectTarget {
  host: string;
  port: number;
  /** PostgreSQL's: it tells another database on the control database's server from that one. */
  database?: string;
  /** In a run the settings were right before, so whoever refuses is restarting; in a set-up they are wrong. */
  phase: 'setup' | 'run';
  /** For all of it, the tunnel included, in milliseconds. */
  timeout_ms: number;
  /** Ends the attempt to connect; the context's own unless another one is given (to clean up after that was aborted). */
  signal?: AbortSignal;
}

/**
 * Opens a connection to an address that was checked, through the account connector's SSH tunnel where it has one. The
 * connection is the caller's to close; the caller listens to its errors.
 * @throws ConnectorError of the tunnel or for an address that is not allowed; else the error of the system with its
 * `code`, or the signal's reason.
 */
export type Connect = (target: ConnectTarget) => Promise<Duplex>;

/**
 * For drivers that connect the socket they are given themselves, and treat it as one of TCP: this one is connected.
 * `host` is what a certificate is held against, which for a socket that is none of TCP would be `localhost`.
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
