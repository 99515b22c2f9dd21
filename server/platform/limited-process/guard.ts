import { existsSync, openSync, readSync, writeSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { periodic } from '../periodic.ts';
import { linesOf } from './lines.ts';
import { LIMIT_WORDS, type ParentMessage, type Standing } from './messages.ts';

// The program of a thread in each child, which the work does not block: passes messages on and watches over the limits.

const CHECK_MS = 25;
const MB = 1024 * 1024;

const STATUS = '/proc/self/status';
/** Open from the start, for a process that may open no file later. */
const status = existsSync(STATUS) ? openSync(STATUS, 'r') : null;
const text = Buffer.alloc(4096);

/** Not `resourceUsage().maxRSS`: on Linux it begins with what the parent had when it started this process. */
function residentMemory(): number {
  if (status === null) return process.memoryUsage.rss();
  const length = readSync(status, text, 0, text.length, 0);
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(text.toString('latin1', 0, length)) ?? [];
  return Number(kilobytes ?? Number.POSITIVE_INFINITY) * 1024;
}

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
    if (residentMemory() > limits.memory) end(LIMIT_WORDS.memory);
    else if (used() > limits.cpu_us) end(LIMIT_WORDS.cpu);
  };
  periodic(check, { every_ms: CHECK_MS, jitter: 0, onError: () => {} });
  const standing = Promise.withResolvers<Standing>();
  parentPort?.on('message', (message: number | Standing) => {
    if (typeof message !== 'number') standing.resolve(message);
    // The end of a job may arrive after the next one has begun.
    else if (message === jobs) limits = null;
  });
  for await (const line of linesOf(Bun.stdin.stream())) {
    const message = JSON.parse(line) as ParentMessage<unknown>;
    if ('job' in message) {
      const { cpu_ms, memory_mb } = message.limits;
      jobs += 1;
      limits = { cpu_us: used() + cpu_ms * 1000, memory: memory_mb * MB };
    }
    if (!('reply' in message) || message.reply > 0) {
      postMessage(message);
      continue;
    }
    const { port, arrived } = await standing.promise;
    port.postMessage(message);
    Atomics.store(arrived, 0, 1);
    Atomics.notify(arrived, 0);
  }
  process.kill(process.pid, 'SIGKILL');
}

await guard();
