import { connect, createServer, type Socket } from 'node:net';
import { limitReceived } from './socket-buffer.ts';

const UNLIMITED = 1e12;
/** After which a change of the limits is seen. */
const LONGEST_PAUSE_MS = 20;

/** What each connection may carry. A change is in force from the next bytes on. */
export interface Limits {
  /** From the server. */
  bytes_per_second?: number;
  /** To the server. */
  upload_bytes_per_second?: number;
}

/** Stands in front of a server, at `host`, and limits the rate of each connection, and what waits in it. */
export async function startTcpProxy(
  to: { host: string; port: number },
  limits: Limits = {},
  host = '127.0.0.1',
): Promise<{ port: number; bytes(): number; cut(): void; stop(): void }> {
  const open = new Set<Socket>();
  let bytes = 0;
  const relay = (from: Socket, into: Socket, limit: keyof Limits) => {
    let [owed, since] = [0, performance.now()];
    const settle = () => {
      const [now, rate] = [performance.now(), limits[limit] ?? UNLIMITED];
      owed = Math.max(0, owed - (rate * (now - since)) / 1000);
      since = now;
      const ahead = (owed / rate) * 1000;
      if (ahead < 5) return void from.resume();
      from.pause();
      setTimeout(settle, Math.min(ahead, LONGEST_PAUSE_MS));
    };
    from.on('data', (chunk) => {
      bytes += chunk.length;
      owed += chunk.length;
      into.write(chunk);
      settle();
    });
    open.add(from);
    from.on('error', () => into.destroy());
    from.on('close', () => {
      open.delete(from);
      into.destroy();
    });
  };
  const server = createServer((client) => {
    const upstream = connect(to.port, to.host, () => limitReceived(upstream));
    relay(upstream, client, 'bytes_per_second');
    relay(client, upstream, 'upload_bytes_per_second');
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  limitReceived(server);
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    /** In both directions. */
    bytes: () => bytes,
    /** Ends all connections. What is on its way is lost, as with a machine that dies. */
    cut,
    stop() {
      server.close();
      cut();
    },
  };
}
