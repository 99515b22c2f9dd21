import { connect, createServer, type Socket } from 'node:net';

/** Stands in front of a server, at `host`, and limits the bytes per second that each connection receives from it. */
export async function startTcpProxy(
  to: { host: string; port: number },
  { host = '127.0.0.1', bytes_per_second = Infinity } = {},
): Promise<{ port: number; bytes(): number; stop(): void }> {
  const open = new Set<Socket>();
  let bytes = 0;
  const server = createServer((client) => {
    const upstream = connect(to.port, to.host);
    let due = 0;
    upstream.on('data', (chunk) => {
      bytes += chunk.length;
      client.write(chunk);
      due = Math.max(due, performance.now()) + (chunk.length / bytes_per_second) * 1000;
      const ahead = due - performance.now();
      if (ahead < 5) return;
      upstream.pause();
      setTimeout(() => upstream.resume(), ahead);
    });
    client.on('data', (chunk) => {
      bytes += chunk.length;
      upstream.write(chunk);
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
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
