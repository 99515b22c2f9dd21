import { limitedEnvironment } from '../config.ts';
import { linesOf } from './lines.ts';
import {
  type ChildMessage,
  errorFrom,
  errorMessage,
  type ErrorMessage,
  LIMIT_WORDS,
  type ParentMessage,
  type WorkLimits,
} from './messages.ts';

/** Why a job did not end by itself. */
export type LimitName = 'time' | 'cpu' | 'memory';

/** The job passed one of its limits and its process was killed. */
export class LimitPassed extends Error {
  constructor(readonly limit: LimitName) {
    super(`The work exceeded its limit of ${limit}`);
    this.name = 'LimitPassed';
  }
}

/** The process of the job ended for another reason. */
export class ProcessDied extends Error {
  override name = 'ProcessDied';
}

export interface JobOptions {
  limits: WorkLimits;
  signal?: AbortSignal;
  /** What the child may call. An `ask` gets the result, or the error. */
  calls?: Record<string, (...args: never[]) => unknown>;
  /** Makes the error that a job threw. */
  errorOf?(message: ErrorMessage): Error;
}

const MAX_WORDS = 10_000;

/** A child process that does one job at a time under limits. Not usable any more once `alive` is false. */
export class LimitedProcess<Job, Item> {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>;
  readonly #lines: AsyncGenerator<string>;
  readonly #ready: Promise<unknown>;
  readonly #words: Promise<string>;
  alive = true;

  constructor(program: string) {
    this.#child = Bun.spawn([process.execPath, program], {
      env: limitedEnvironment(),
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    this.#child.unref();
    this.#lines = linesOf(this.#child.stdout);
    this.#ready = this.#lines.next();
    this.#words = lastWords(this.#child.stderr);
    void this.#child.exited.then(() => (this.alive = false));
  }

  /** Ends the process. Resolves once it has ended. */
  async end(): Promise<void> {
    this.alive = false;
    this.#child.kill('SIGKILL');
    await this.#child.exited;
  }

  /** Leaving the iteration early, an error of the process, or a stop ends the process. @throws LimitPassed, ProcessDied */
  async *run(job: Job, options: JobOptions): AsyncGenerator<Item> {
    const { limits, signal, errorOf = errorFrom } = options;
    signal?.throwIfAborted();
    let isLate = false;
    let isDone = false;
    const kill = () => this.#child.kill('SIGKILL');
    let timer: Timer | undefined;
    signal?.addEventListener('abort', kill, { once: true });
    try {
      // The time of a job begins once the child has loaded what jobs need, which takes seconds on a busy machine.
      await this.#ready;
      timer = setTimeout(() => ((isLate = true), kill()), limits.ms);
      this.#send({ job, limits });
      for (;;) {
        const { value, done } = await this.#lines.next();
        if (done) break;
        const message = JSON.parse(value) as ChildMessage<Item>;
        if ('item' in message) yield message.item;
        else if ('ask' in message) void this.#answer(message, options);
        else if ('note' in message) callOf(options, message.note)?.(...(message.args as never[]));
        else {
          isDone = true;
          if ('error' in message) throw errorOf(message.error);
          return;
        }
      }
      signal?.throwIfAborted();
      throw isLate ? new LimitPassed('time') : await this.#reason();
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', kill);
      if (!isDone) await this.end();
    }
  }

  async #reason(): Promise<Error> {
    await this.#child.exited;
    const words = await this.#words;
    if (words.includes(LIMIT_WORDS.memory)) return new LimitPassed('memory');
    if (words.includes(LIMIT_WORDS.cpu)) return new LimitPassed('cpu');
    const how = this.#child.signalCode ?? `exit code ${this.#child.exitCode}`;
    return new ProcessDied(`The process ended with ${how}: ${words.slice(-500)}`);
  }

  async #answer(message: { ask: number; name: string; args: unknown[] }, options: JobOptions): Promise<void> {
    try {
      const value = await callOf(options, message.name)?.(...(message.args as never[]));
      this.#send({ reply: message.ask, value: value ?? null });
    } catch (error) {
      this.#send({ reply: message.ask, error: errorMessage(error) });
    }
  }

  /** What a process that ends meanwhile does not get is no error: `run` sees the end of its lines, and why it ended. */
  #send(message: ParentMessage<Job>): void {
    if (!this.alive) return;
    const { stdin } = this.#child;
    const text = `${JSON.stringify(message)}\n`;
    const sent = async () => {
      await stdin.write(text);
      await stdin.flush();
    };
    sent().catch(() => {});
  }
}

const callOf = ({ calls }: JobOptions, name: string) => calls?.[name];

/** The end of what the process writes on standard error. */
async function lastWords(stream: ReadableStream<Uint8Array>): Promise<string> {
  let words = '';
  for await (const line of linesOf(stream)) words = `${words}${line}\n`.slice(-MAX_WORDS);
  return words;
}
