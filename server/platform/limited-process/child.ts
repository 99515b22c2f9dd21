import { writeSync } from 'node:fs';
import { setPriority } from 'node:os';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import {
  type ChildMessage,
  errorFrom,
  errorMessage,
  type ParentMessage,
  type ReplyMessage,
  type Standing,
} from './messages.ts';

/** Work for users must not slow the service down that shares the processors with it. */
const PRIORITY = 10;

/** What a job may call in the parent process. */
export interface ParentCalls {
  ask(name: string, ...args: unknown[]): Promise<unknown>;
  /** Like `ask`, for work that cannot wait for a promise: the thread stands still until the reply is there. */
  askNow(name: string, ...args: unknown[]): unknown;
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
    askNow: (name, ...args) => askStanding({ ask: -(asked += 1), name, args }),
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
  const askStanding = standingAsks(watching);
  write({ ready: true });
  void output.flush();
}

/** Asks for which this thread stands still. The numbers are below 0: the guard keeps their replies. */
function standingAsks(guard: Worker): (message: { ask: number; name: string; args: unknown[] }) => unknown {
  const { port1, port2 } = new MessageChannel();
  const arrived = new Int32Array(new SharedArrayBuffer(4));
  // Loads what the function needs: later the process may be closed.
  receiveMessageOnPort(port1);
  guard.postMessage({ port: port2, arrived } satisfies Standing, [port2]);
  return (message) => {
    Atomics.store(arrived, 0, 0);
    writeWhole(`${JSON.stringify(message)}\n`);
    Atomics.wait(arrived, 0, 0);
    const reply = receiveMessageOnPort(port1)?.message as ReplyMessage;
    if ('error' in reply) throw errorFrom(reply.error);
    return reply.value;
  };
}

const encoder = new TextEncoder();
const pause = new Int32Array(new SharedArrayBuffer(4));

/** A pipe that is full takes a part of the text, or none. */
function writeWhole(text: string): void {
  let rest = encoder.encode(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}
