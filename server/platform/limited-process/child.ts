import { setPriority } from 'node:os';
import { type ChildMessage, errorFrom, errorMessage, type ParentMessage } from './messages.ts';

/** Work for users must not slow the service down that shares the processors with it. */
const PRIORITY = 10;

/** What a job may call in the parent process. */
export interface ParentCalls {
  ask(name: string, ...args: unknown[]): Promise<unknown>;
  note(name: string, ...args: unknown[]): void;
}

export type JobHandler<Job, Item> = (job: Job, parent: ParentCalls) => AsyncIterable<Item>;

/** Serves jobs, one after the other. Call it at the top level of the program of the child. */
export function serveJobs<Job, Item>(handler: JobHandler<Job, Item>): void {
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
  // A program of its own: that of the child would load all that the jobs need a second time.
  const watching = new Worker(new URL('./guard.ts', import.meta.url));
  watching.addEventListener('message', ({ data }: MessageEvent<ParentMessage<Job>>) => {
    if ('job' in data) return void run(data.job);
    const reply = waiting.get(data.reply);
    waiting.delete(data.reply);
    if ('error' in data) reply?.reject(errorFrom(data.error));
    else reply?.resolve(data.value);
  });
  write({ ready: true });
  void output.flush();
}
