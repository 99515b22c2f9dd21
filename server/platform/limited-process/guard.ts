import { writeSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { periodic } from '../periodic.ts';
import { linesOf } from './lines.ts';
import { LIMIT_WORDS, type ParentMessage } from './messages.ts';

// The program of a thread in each child, which the work does not block: passes messages on and watches over the limits.

const CHECK_MS = 25;
const MB = 1024 * 1024;

async function guard(): Promise<void> {
  let limits: { cpu_us: number; memory: number } | null = null;
  let jobs = 0;
  const used = () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  };
  const end = (words: string) => {
    writeSync(2, `${words}\n`);
    process.kill(process.pid, 'SIGKILL');
  };
  const check = async () => {
    if (limits === null) return;
    if (process.memoryUsage.rss() > limits.memory) end(LIMIT_WORDS.memory);
    else if (used() > limits.cpu_us) end(LIMIT_WORDS.cpu);
  };
  periodic(check, { every_ms: CHECK_MS, jitter: 0, onError: () => {} });
  // The end of a job may arrive after the next one has begun.
  parentPort?.on('message', (ended: number) => {
    if (ended === jobs) limits = null;
  });
  for await (const line of linesOf(Bun.stdin.stream())) {
    const message = JSON.parse(line) as ParentMessage<unknown>;
    if ('job' in message) {
      const { cpu_ms, memory_mb } = message.limits;
      jobs += 1;
      limits = { cpu_us: used() + cpu_ms * 1000, memory: memory_mb * MB };
    }
    postMessage(message);
  }
  process.kill(process.pid, 'SIGKILL');
}

await guard();
