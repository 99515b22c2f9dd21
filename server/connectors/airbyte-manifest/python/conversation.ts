import { parseExactly } from '../../cells/json-line.ts';

/** What components may have the service do. */
export type PythonHost = Record<string, (...args: never[]) => Promise<unknown>>;

/** How the last failing request of a component ended: its errors follow from that. */
export interface RequestTrouble {
  kind: 'transient' | 'refused' | null;
}

/** A call of a component. */
export interface Frame {
  /** What the service does for this call. */
  host: PythonHost;
  trouble: RequestTrouble;
  /** An error of the service while it did something for the call. */
  failed: unknown;
}

interface InnerCall {
  frame: Frame;
  /** The call as JSON. */
  run: string;
  result: PromiseWithResolvers<string>;
}

/**
 * A call of Python with what it asks the service for. A component that waits for the service blocks its process. What the
 * service then needs from components is the reply: the process makes these calls first, so that all components of a call
 * share their variables.
 */
export class Conversation {
  readonly #frames: Frame[];
  /** The calls that the process makes, the innermost last. */
  readonly #running: InnerCall[] = [];
  readonly #waiting: InnerCall[] = [];
  /** Replies that the process waits for, the innermost last. Null: the service is not done yet. */
  readonly #replies: { text: string | null }[] = [];
  #changed = Promise.withResolvers<void>();
  #isOver = false;

  constructor(first: Frame) {
    this.#frames = [first];
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The result of a call, as JSON. */
  async call(run: string, frame: Frame): Promise<string> {
    const result = Promise.withResolvers<string>();
    this.#waiting.push({ frame, run, result });
    this.#changed.resolve();
    return await result.promise;
  }

  /** Does what Python asks for, and returns the reply. */
  async serve(text: string): Promise<string> {
    const [name, ...args] = parseExactly(text) as [string, ...never[]];
    if (name === 'returned') {
      const inner = this.#running.pop();
      if (!inner) throw new Error('no call is running inside this one');
      this.#frames.pop();
      inner.result.resolve(args[0] as unknown as string);
    } else {
      const reply: { text: string | null } = { text: null };
      this.#replies.push(reply);
      const [frame] = this.#frames.slice(-1);
      void this.#fill(reply, replyOf(frame as Frame, name, args));
    }
    return await this.#next();
  }

  /** The calls that are not made any more fail. */
  end(error: unknown): void {
    this.#isOver = true;
    for (const { result } of [...this.#running, ...this.#waiting]) result.reject(error);
  }

  async #fill(reply: { text: string | null }, text: Promise<string>): Promise<void> {
    reply.text = await text;
    this.#changed.resolve();
  }

  async #next(): Promise<string> {
    for (;;) {
      this.#changed = Promise.withResolvers();
      const inner = this.#waiting.shift();
      if (inner) {
        this.#running.push(inner);
        this.#frames.push(inner.frame);
        return JSON.stringify({ call: inner.run });
      }
      const text = this.#replies.at(-1)?.text;
      if (typeof text === 'string') {
        this.#replies.pop();
        return text;
      }
      await this.#changed.promise;
    }
  }
}

async function replyOf(frame: Frame, name: string, args: never[]): Promise<string> {
  try {
    if (!Object.hasOwn(frame.host, name)) throw new Error(`the service has no ${name}`);
    return JSON.stringify({ value: (await frame.host[name]?.(...args)) ?? null });
  } catch (error) {
    frame.failed = error;
    return JSON.stringify({ error: 'the service failed' });
  }
}
