import { connect, type Socket } from 'node:net';
import { type Address, checkedAddresses, type EgressRules, type Place } from './egress-rules.ts';

export interface ConnectOptions {
  /** Limit in milliseconds for resolving and connecting together. */
  timeout_ms: number;
  signal: AbortSignal;
}

/**
 * Opens a TCP connection to one of the place's checked addresses, tried in order.
 * @throws EgressError, the error of the resolver or of the first address with its `code` (`ETIMEDOUT` after the limit), or
 * the reason of the signal
 */
export async function guardedConnect(place: Place, rules: EgressRules, options: ConnectOptions): Promise<Socket> {
  const deadline = performance.now() + options.timeout_ms;
  const left = (share: number) => Math.max(1, (deadline - performance.now()) / share);
  const { signal } = options;
  const addresses = await inTime(checkedAddresses(place, rules), { timeout_ms: left(1), signal });
  let failure: unknown;
  for (const [at, { address }] of addresses.entries()) {
    signal.throwIfAborted();
    const timeout_ms = left(addresses.length - at);
    const connected = await connectTo({ address, port: place.port }, { timeout_ms, signal }).catch((error: unknown) => {
      failure ??= error;
      return null;
    });
    if (connected) return connected;
  }
  signal.throwIfAborted();
  throw failure;
}

function connectTo(target: Pick<Address, 'address'> & { port: number }, options: ConnectOptions): Promise<Socket> {
  const socket = connect({
    host: target.address,
    port: target.port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  });
  // Never removed: before the caller adds a listener, an error would end the process.
  socket.on('error', () => {});
  const opened = new Promise<Socket>((resolve, reject) => {
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });
  return inTime(opened, options).catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
}

/** Waits for the work, the timeout or the signal, whichever comes first. */
async function inTime<Result>(work: Promise<Result>, { timeout_ms, signal }: ConnectOptions): Promise<Result> {
  const ended = Promise.withResolvers<never>();
  const late = () => ended.reject(Object.assign(new Error('no response in time'), { code: 'ETIMEDOUT' }));
  const aborted = () => ended.reject(signal.reason);
  const timer = setTimeout(late, timeout_ms);
  signal.addEventListener('abort', aborted, { once: true });
  if (signal.aborted) aborted();
  try {
    return await Promise.race([work, ended.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', aborted);
    // A later failure of the work has no receiver any more.
    work.catch(() => {});
  }
}
