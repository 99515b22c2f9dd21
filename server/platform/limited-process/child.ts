import { writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { periodic } from '../periodic.ts';
import { linesOf } from './lines.ts';
import { type ChildMessage, errorFrom, errorMessage, LIMIT_WORDS, type ParentMessage } from './messages.ts';

const CHECK_MS = 25;
const MB = 1024 * 1024;
/** Work for users must not slow the service down that shares the processors with it. */
const PRIORITY = 10;

/** What a job may call in the parent process. */
export interface ParentCalls {
  ask(name: string, ...args: unknown[]): Promise<unknown>;
  note(name: string, ...args: unknown[]): void;
}

export type JobHandler<Job, Item> = (job: Job, parent: ParentCalls) => AsyncIterable<Item>;

/** Serves jobs, one after the other. Call it at the top level of the program of the child, in every thread. */
export function serveJobs<Job, Item>(program: string, handler: JobHandler<Job, Item>): void {
  if (Bun.isMainThread) serve(program, handler);
  else void guard();
}

function serve<Job, Item>(program: string, handler: JobHandler<Job, Item>): void {
  setPriority(PRIORITY);
  const output = Bun.stdout.writer();
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let asked = 0;
  const write = (message: ChildMessage<Item>) => void output.write(`${JSON.stringify(message)}\n`);
  const parent: ParentCalls = {
    async ask(name, ...args) {
      const reply = Promise.withResolvers<unknown>();
      const ask = (asked += 1);
      waiting.set(ask, reply);
      write({ ask, name, args });
      await output.flush();
      return reply.promise;
    },
    note: (note, ...args) => write({ note, args }),
  };
  let jobs = 0;
  const run = async (job: Job) => {
    const number = (jobs += 1);
    try {
      for await (const item of handler(job, parent)) {
        write({ item });
        // Waits until the reader has taken it.
        await output.flush();
      }
      write({ done: true });
    } catch (error) {
      write({ error: errorMessage(error) });
    }
    watching.postMessage(number, []);
    await output.flush();
  };
  const watching = new Worker(program);
  watching.addEventListener('message', ({ data }: MessageEvent<ParentMessage<Job>>) => {
    if ('job' in data) return void run(data.job);
    const reply = waiting.get(data.reply);
    waiting.delete(data.reply);
    if ('error' in data) reply?.reject(errorFrom(data.error));
    else reply?.resolve(data.value);
  });
}

/** Runs in a thread of its own, which the work does not block: passes messages on and watches over the limits. */
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
