import { AsyncLocalStorage } from 'node:async_hooks';
import { join } from 'node:path';
import { LimitedProcess, LimitPassed } from '../../../platform/limited-process/limited-process.ts';
import type { WorkLimits } from '../../../platform/limited-process/messages.ts';
import { parseExactly } from '../../cells/json-line.ts';
import { AuthenticationError, ConfigurationError, DataError, RetryableError } from '../../contract/errors.ts';
import { Conversation, type Frame, type PythonHost, type RequestTrouble } from './conversation.ts';
import type { PythonAnswer, PythonJob } from './python-job.ts';
import { snapshotPath } from './snapshot.ts';

const PROGRAM = join(import.meta.dir, 'python-process.ts');
const MEMORY_MB = 768;
const CPU_MS = 60_000;
/** A call may wait for requests, and read all parents. */
const CALL_MS = 3_600_000;
/** Of a call that reads a whole slice. */
const LONG = { ms: 86_400_000, cpu_ms: CALL_MS };
export const PYTHON_LIMITS: WorkLimits = { ms: CALL_MS, cpu_ms: CPU_MS, memory_mb: MEMORY_MB };
const MAX_NUMBERS = 10_000;

export interface PythonOptions {
  /** By their path in the connector's package. */
  files: Record<string, string>;
  config: Record<string, unknown>;
  signal: AbortSignal;
  redact(text: string): string;
  /** Of each call but the first, which loads the files. */
  limits?: WorkLimits;
}

interface Sandbox {
  process: LimitedProcess<PythonJob, PythonAnswer>;
  /** Calls, one after the other. */
  tail: Promise<unknown>;
}

interface Alone {
  /** What the service does for this call alone. */
  host?: PythonHost;
  signal?: AbortSignal;
}

interface Work {
  job: PythonJob;
  frame: Frame;
  limits: WorkLimits;
  signal: AbortSignal;
}

interface Failure {
  type: string;
  message: string;
  file?: string;
  line?: number;
  function?: string;
}

/** The custom components of one manifest, in processes that are closed to everything outside. */
export class PythonSession {
  #shared: Promise<Sandbox> | null = null;
  /** Of long calls that have ended. */
  readonly #idle: Sandbox[] = [];
  readonly #conversation = new AsyncLocalStorage<Conversation>();
  readonly #numbers = new Map<unknown, number>();

  constructor(
    private readonly options: PythonOptions,
    private readonly host: (trouble: RequestTrouble) => PythonHost,
  ) {}

  /** The result of a component. @throws ConnectorError naming class and line */
  async call(component: unknown, call: string, args: unknown[] = [], more: PythonHost = {}): Promise<unknown> {
    const { limits = PYTHON_LIMITS, signal } = this.options;
    const run = this.#run(component, call, args);
    const frame = this.#frame(more);
    const outer = this.#conversation.getStore();
    if (outer && !outer.isOver) return this.#resultOf(frame, await outer.call(run, frame));
    const sandbox = await (this.#shared ??= this.#open());
    const done = sandbox.tail.then(() => this.#job(sandbox, { job: { run }, frame, limits, signal }));
    sandbox.tail = done.catch(() => {});
    return await done;
  }

  /**
   * A call that lasts as long as its reader takes: it has a process of its own, so that other components are not kept
   * waiting. Its end by the signal ends the process.
   */
  async callAlone(
    component: unknown,
    call: string,
    args: unknown[],
    { host = {}, signal }: Alone = {},
  ): Promise<unknown> {
    const ended = signal ? AbortSignal.any([this.options.signal, signal]) : this.options.signal;
    const run = this.#run(component, call, args);
    const sandbox = this.#idle.pop() ?? (await this.#open());
    try {
      const work = { job: { run }, frame: this.#frame(host), limits: { ...PYTHON_LIMITS, ...LONG }, signal: ended };
      return await this.#job(sandbox, work);
    } finally {
      if (sandbox.process.alive) this.#idle.push(sandbox);
    }
  }

  #run(component: unknown, call: string, args: unknown[]): string {
    const number = this.#numbers.get(component) ?? this.#numbers.size + 1;
    if (number > MAX_NUMBERS) throw new ConfigurationError('too_many_components', 'Too many custom components');
    this.#numbers.set(component, number);
    return JSON.stringify({ number, component, call, args });
  }

  #frame(more: PythonHost): Frame {
    const trouble: RequestTrouble = { kind: null };
    return { host: { ...this.host(trouble), ...more }, trouble, failed: null };
  }

  async #open(): Promise<Sandbox> {
    const { signal, files, config } = this.options;
    const snapshot = await snapshotPath();
    signal.throwIfAborted();
    const process = new LimitedProcess<PythonJob, PythonAnswer>(PROGRAM);
    signal.addEventListener('abort', () => void process.end(), { once: true });
    const sandbox: Sandbox = { process, tail: Promise.resolve() };
    const job = { load: { files, config, snapshot } };
    await this.#job(sandbox, { job, frame: this.#frame({}), limits: PYTHON_LIMITS, signal });
    return sandbox;
  }

  async #job(sandbox: Sandbox, { job, frame, limits, signal }: Work): Promise<unknown> {
    const conversation = new Conversation(frame);
    const python = (text: string) => this.#conversation.run(conversation, () => conversation.serve(text));
    let answer: string | null = null;
    try {
      // To the end: leaving early would end the process.
      for await (const text of sandbox.process.run(job, { limits, signal, calls: { python } })) answer = text;
    } catch (error) {
      // Whatever it was: the engine of Python may not be used after it.
      await sandbox.process.end();
      signal.throwIfAborted();
      throw limitError(error, limits);
    } finally {
      conversation.end(new RetryableError('python_ended', 'The call of components.py has ended'));
    }
    if (answer === null) throw new Error('the sandbox did not answer');
    return this.#resultOf(frame, answer);
  }

  #resultOf({ failed, trouble }: Frame, text: string): unknown {
    const result = parseExactly(text) as { value: unknown } | { error: Failure } | { host: string };
    if ('value' in result) return result.value;
    if ('host' in result) throw failed instanceof Error ? failed : new Error('the service failed', { cause: failed });
    throw this.#errorOf(result.error, trouble);
  }

  #errorOf({ type, message, file, line, function: name }: Failure, { kind }: RequestTrouble): Error {
    const place = line === undefined ? 'components.py' : `${file} line ${line}, ${name}`;
    const text = this.options.redact(`${place}: ${type}${message === '' ? '' : `: ${message}`}`);
    if (kind === 'transient') return new RetryableError('python_error', text);
    if (kind === 'refused') return new AuthenticationError('python_error', text);
    return new DataError('python_error', text);
  }
}

function limitError(error: unknown, { memory_mb, cpu_ms, ms }: WorkLimits): unknown {
  if (!(error instanceof LimitPassed))
    return new RetryableError('python_ended', 'The process of components.py ended unexpectedly', { cause: error });
  const what = {
    memory: `${memory_mb} MB of memory`,
    cpu: `${cpu_ms / 1000} s of processor time`,
    time: `${ms / 1000} s`,
  };
  return new ConfigurationError(
    'python_limit_exceeded',
    `A call of components.py used more than ${what[error.limit]}. Its components must return less, or end`,
  );
}

/** The session of a manifest that has custom components. */
export function inPython(python: PythonSession | null): PythonSession {
  if (python === null) throw new Error('a custom component without components.py');
  return python;
}
