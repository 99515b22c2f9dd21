import { connect, createServer, type Socket } from 'node:net';

interface Limits {
  host?: string;
  /** That each connection receives from the server. */
  bytes_per_second?: number;
  /** That each connection sends to it. */
  upload_bytes_per_second?: number;
}

/** Stands in front of a server, at `host`, and limits the rate of each connection. */
export async function startTcpProxy(
  to: { host: string; port: number },
  { host = '127.0.0.1', bytes_per_second = Infinity, upload_bytes_per_second = Infinity }: Limits = {},
): Promise<{ port: number; bytes(): number; stop(): void }> {
  const open = new Set<Socket>();
  let bytes = 0;
  const relay = (from: Socket, into: Socket, rate: number) => {
    let due = 0;
    from.on('data', (chunk) => {
      bytes += chunk.length;
      into.write(chunk);
      due = Math.max(due, performance.now()) + (chunk.length / rate) * 1000;
      const ahead = due - performance.now();
      if (ahead < 5) return;
      from.pause();
      setTimeout(() => from.resume(), ahead);
    });
    open.add(from);
    from.on('error', () => into.destroy());
    from.on('close', () => {
      open.delete(from);
      into.destroy();
    });
  };
  const server = createServer((client) => {
    const upstream = connect(to.port, to.host);
    relay(upstream, client, bytes_per_second);
    relay(client, upstream, upload_bytes_per_second);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    /** In both directions. */
    bytes: () => bytes,
    stop() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
