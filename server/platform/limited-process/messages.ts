import type { MessagePort } from 'node:worker_threads';

/**
 * Lines of JSON between a service process and a child that does work for users under limits. Jobs and replies come on the
 * child's standard input, everything else on its standard output. The child ends when standard input closes, however busy
 * it is.
 */

/** What one job may take. */
export interface WorkLimits {
  /** Elapsed time. */
  ms: number;
  cpu_ms: number;
  memory_mb: number;
}

export type ReplyMessage = { reply: number; value: unknown } | { reply: number; error: ErrorMessage };
export type ParentMessage<Job> = { job: Job; limits: WorkLimits } | ReplyMessage;

/** How the guard wakes a thread that stands still until a reply is there. */
export interface Standing {
  port: MessagePort;
  arrived: Int32Array;
}

export type ChildMessage<Item> =
  /** Sent once, when all is loaded. */
  | { ready: true }
  | { item: Item }
  /** A call whose result the child waits for. */
  | { ask: number; name: string; args: unknown[] }
  /** A call without a result. */
  | { note: string; args: unknown[] }
  | { error: ErrorMessage }
  | { done: true };

/** An error as it crosses the boundary: its classes by name, the nearest first, and its own fields. */
export interface ErrorMessage {
  classes: string[];
  message: string;
  fields: Record<string, unknown>;
  stack?: string;
}

export function errorMessage(error: unknown): ErrorMessage {
  if (!(error instanceof Error)) return { classes: [], message: String(error), fields: {} };
  const classes: string[] = [];
  for (let type = Object.getPrototypeOf(error); type !== null; type = Object.getPrototypeOf(type)) {
    classes.push(type.constructor.name);
  }
  const { message, stack } = error;
  const fields = Object.entries(error).filter(([key]) => !['message', 'stack', 'cause'].includes(key));
  return { classes, message, stack, fields: Object.fromEntries(fields) };
}

type ErrorClass = abstract new (...args: never[]) => Error;

/** The error again, of the nearest class among `known`; else a plain Error. */
export function errorFrom({ classes, message, fields, stack }: ErrorMessage, known: readonly ErrorClass[] = []): Error {
  const type = classes.flatMap((name) => known.find((one) => one.name === name) ?? [])[0] ?? Error;
  const error = Object.create(type.prototype) as Error;
  Object.assign(error, fields);
  const hidden = { configurable: true, enumerable: false, writable: true };
  return Object.defineProperties(error, {
    message: { ...hidden, value: message },
    stack: { ...hidden, value: stack ?? message },
  });
}

/** Which limit the child has passed: it writes this as its last words on standard error. */
export const LIMIT_WORDS = { cpu: 'limit passed: cpu', memory: 'limit passed: memory' } as const;
