import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { connectedSocket } from '../../../../contract/connect.ts';
import { timeoutError } from '../../../rest/failures.ts';
import type { FtpLocation } from '../../settings/ftp.ts';

/** The options of every TLS handshake with the server; null: no TLS. */
export function tlsOptions(config: FtpLocation): ConnectionOptions | null {
  const { ftp_encryption, check_certificate, ca_certificate, host = '' } = config;
  if (ftp_encryption === 'none') return null;
  return {
    host,
    // Addresses are not allowed here; the certificate is checked against `host` then.
    ...(isIP(host) === 0 && { servername: host }),
    rejectUnauthorized: check_certificate,
    ...(ca_certificate && { ca: ca_certificate }),
  };
}

/** TLS over a connected socket, whose handshake may not have begun yet. */
export const tlsOver = (socket: Duplex, options: ConnectionOptions): TLSSocket =>
  connect({ ...options, socket: connectedSocket(socket, options.host ?? '') as Socket });

interface Handshake {
  server: string;
  seconds: number;
  signal: AbortSignal;
}

/**
 * Waits for the handshake. The caller destroys the socket after an error.
 * @throws ConnectorError, the error of the handshake with its `code`, or the reason of the signal
 */
export async function handshake(socket: TLSSocket, { server, seconds, signal }: Handshake): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(timeoutError(server, seconds)), seconds * 1000);
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  socket.once('secureConnect', resolve).on('error', reject);
  socket.once('close', () => reject(new Error('the server closed the connection during the TLS handshake')));
  if (signal.aborted) abort();
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
