import { connect, type Socket } from 'node:net';
import { watchOver } from './watchdog.ts';

const LISTEN = `
const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
console.log(server.port);
`;
const MOST_WAITING = 10_000;

/**
 * A loopback port that never answers, like a host behind a firewall that drops packets: a stopped listener whose queue
 * of waiting connections is full.
 */
export async function blackHole(): Promise<{ port: number; stop(): void }> {
  const child = Bun.spawn([process.execPath, '-e', LISTEN], { stdio: ['ignore', 'pipe', 'inherit'] });
  watchOver(child);
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value).trim());
  child.kill('SIGSTOP');
  const waiting: Socket[] = [];
  const stop = () => {
    for (const socket of waiting) socket.destroy();
    child.kill('SIGKILL');
  };
  while (waiting.length < MOST_WAITING) {
    const more = Array.from({ length: 50 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    waiting.push(...more);
    const opened = more.map((socket) => new Promise<boolean>((resolve) => socket.once('connect', () => resolve(true))));
    const full = Promise.all(opened).then(() => false);
    if (await Promise.race([full, Bun.sleep(500).then(() => true)])) return { port, stop };
  }
  stop();
  throw new Error('the queue never filled');
}
