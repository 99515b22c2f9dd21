import { connect, createServer, type Socket } from 'node:net';
import tls from 'node:tls';

/** Puts TLS before a PostgreSQL server that has none: as the server does it, after a request for it on the same port. */
export async function startTlsFront(
  to: { host: string; port: number },
  certificate: { key: string; cert: string },
): Promise<{ port: number; stop(): void }> {
  const open = new Set<Socket>();
  const follow = <Stream extends Socket>(socket: Stream): Stream => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    return socket;
  };
  const join = (a: Socket, b: Socket) => {
    a.pipe(b).pipe(a);
    a.on('close', () => b.destroy());
    b.on('close', () => a.destroy());
  };
  const inner = tls.createServer(certificate, (secure) => join(follow(secure), follow(connect(to.port, to.host))));
  inner.on('tlsClientError', () => {});
  await listening(inner);
  const front = createServer((socket) => {
    follow(socket).once('data', () => {
      socket.pause();
      socket.write('S');
      join(socket, follow(connect(portOf(inner), '127.0.0.1')));
    });
  });
  await listening(front);
  const stop = () => {
    for (const server of [front, inner]) server.close();
    for (const socket of open) socket.destroy();
  };
  return { port: portOf(front), stop };
}

type Listener = ReturnType<typeof createServer>;
const listening = (server: Listener) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
const portOf = (server: Listener) => (server.address() as { port: number }).port;
