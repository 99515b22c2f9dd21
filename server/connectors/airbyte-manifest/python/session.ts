import { AsyncLocalStorage } from 'node:async_hooks';
import { join } from 'node:path';
import { LimitedProcess, LimitPassed } from '../../../platform/limited-process/limited-process.ts';
import type { WorkLimits } from '../../../platform/limited-process/messages.ts';
import { parseExactly } from '../../cells/json-line.ts';
import { AuthenticationError, ConfigurationError, DataError, RetryableError } from '../../contract/errors.ts';
import type { PythonAnswer, PythonJob } from './python-job.ts';
import { snapshotPath } from './snapshot.ts';

const PROGRAM = join(import.meta.dir, 'python-process.ts');
const MEMORY_MB = 768;
const CPU_MS = 60_000;
/** A call may wait for requests, and read all parents. */
const CALL_MS = 3_600_000;
export const PYTHON_LIMITS: WorkLimits = { ms: CALL_MS, cpu_ms: CPU_MS, memory_mb: MEMORY_MB };
const MAX_NUMBERS = 10_000;

/** What components may have the service do. */
export type PythonHost = Record<string, (...args: never[]) => Promise<unknown>>;

export interface PythonOptions {
  /** By their path in the connector's package. */
  files: Record<string, string>;
  config: Record<string, unknown>;
  signal: AbortSignal;
  redact(text: string): string;
  /** Of each call but the first, which loads the files. */
  limits?: WorkLimits;
}

/** How the last failing request of a component ended: its errors follow from that. */
export interface RequestTrouble {
  kind: 'transient' | 'refused' | null;
}

interface Sandbox {
  process: LimitedProcess<PythonJob, PythonAnswer>;
  /** Calls, one after the other. */
  tail: Promise<unknown>;
  trouble: RequestTrouble;
  /** An error of the service while it did something for the component. */
  failed: unknown;
}

interface Work {
  job: PythonJob;
  /** What the service does for this job alone. */
  more: PythonHost;
  limits: WorkLimits;
}

interface Failure {
  type: string;
  message: string;
  file?: string;
  line?: number;
  function?: string;
}

/**
 * The custom components of one manifest, in a process that is closed to everything outside. While a component waits for
 * the service, it blocks its process: what the service then needs from components runs in the next process.
 */
export class PythonSession {
  readonly #sandboxes: (Promise<Sandbox> | undefined)[] = [];
  readonly #depth = new AsyncLocalStorage<number>();
  readonly #numbers = new Map<unknown, number>();

  constructor(
    private readonly options: PythonOptions,
    private readonly host: (trouble: RequestTrouble) => PythonHost,
  ) {}

  /** The result of a component. @throws ConnectorError naming class and line */
  async call(component: unknown, call: string, args: unknown[] = [], more: PythonHost = {}): Promise<unknown> {
    const depth = this.#depth.getStore() ?? 0;
    const sandbox = await (this.#sandboxes[depth] ??= this.#open(depth));
    const number = this.#numbers.get(component) ?? this.#numbers.size + 1;
    if (number > MAX_NUMBERS) throw new ConfigurationError('too_many_components', 'Too many custom components');
    this.#numbers.set(component, number);
    const { limits = PYTHON_LIMITS } = this.options;
    const job = { run: JSON.stringify({ number, component, call, args }) };
    const done = sandbox.tail.then(() => this.#job(sandbox, depth, { job, more, limits }));
    sandbox.tail = done.catch(() => {});
    return await done;
  }

  async #open(depth: number): Promise<Sandbox> {
    const { signal, files, config } = this.options;
    const snapshot = await snapshotPath();
    signal.throwIfAborted();
    const process = new LimitedProcess<PythonJob, PythonAnswer>(PROGRAM);
    signal.addEventListener('abort', () => void process.end(), { once: true });
    const sandbox: Sandbox = { process, tail: Promise.resolve(), trouble: { kind: null }, failed: null };
    await this.#job(sandbox, depth, { job: { load: { files, config, snapshot } }, more: {}, limits: PYTHON_LIMITS });
    return sandbox;
  }

  async #job(sandbox: Sandbox, depth: number, { job, more, limits }: Work): Promise<unknown> {
    const { signal } = this.options;
    sandbox.trouble.kind = null;
    const host = { ...this.host(sandbox.trouble), ...more };
    const python = (text: string) => this.#depth.run(depth + 1, () => this.#serve(sandbox, host, text));
    let answer: string | null = null;
    try {
      // To the end: leaving early would end the process.
      for await (const text of sandbox.process.run(job, { limits, signal, calls: { python } })) answer = text;
    } catch (error) {
      // Whatever it was: the engine of Python may not be used after it.
      await sandbox.process.end();
      signal.throwIfAborted();
      throw limitError(error, limits);
    }
    if (answer === null) throw new Error('the sandbox did not answer');
    return this.#resultOf(sandbox, answer);
  }

  async #serve(sandbox: Sandbox, host: PythonHost, text: string): Promise<string> {
    const [name, ...args] = parseExactly(text) as [string, ...never[]];
    try {
      if (!Object.hasOwn(host, name)) throw new Error(`the service has no ${name}`);
      return JSON.stringify({ value: (await host[name]?.(...args)) ?? null });
    } catch (error) {
      sandbox.failed = error;
      return JSON.stringify({ error: 'the service failed' });
    }
  }

  #resultOf(sandbox: Sandbox, text: string): unknown {
    const result = parseExactly(text) as { value: unknown } | { error: Failure } | { host: string };
    if ('value' in result) return result.value;
    const { failed } = sandbox;
    sandbox.failed = null;
    if ('host' in result) throw failed instanceof Error ? failed : new Error('the service failed', { cause: failed });
    throw this.#errorOf(result.error, sandbox.trouble);
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
