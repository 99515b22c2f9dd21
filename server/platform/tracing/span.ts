import { AsyncLocalStorage } from 'node:async_hooks';

export type SpanAttributes = Record<string, string | number | boolean>;

/** `server` answers a request, `consumer` takes a job, `client` sends a request. */
export type SpanKind = 'internal' | 'server' | 'client' | 'consumer';

/** A piece of work in a trace. */
export interface Span {
  /** Its place in the trace, in the form of the header `traceparent` (W3C Trace Context). */
  traceparent: string;
  /** Whether requests to sources and destinations carry `traceparent`. */
  propagates: boolean;
  child(name: string, options?: SpanOptions): Span;
  set(attributes: SpanAttributes): void;
  fail(error: unknown): void;
  end(): void;
}

export interface SpanOptions {
  kind?: SpanKind;
  attributes?: SpanAttributes;
}

/** Traces of this process. */
export interface Tracing {
  /** Begins a span below a `traceparent`, or a trace. Null: traces are off. */
  begin(name: string, options: SpanOptions & { traceparent: string | null }): Span | null;
  /** Sends what is left. */
  stop(): Promise<void>;
}

export const NO_TRACING: Tracing = { begin: () => null, stop: async () => {} };

const spans = new AsyncLocalStorage<Span>();

/** The span of the work that calls. */
export const activeSpan = (): Span | null => spans.getStore() ?? null;

/** Does work within a span, and ends the span. */
export async function within<Result>(span: Span | null, work: () => Promise<Result>): Promise<Result> {
  if (!span) return work();
  try {
    return await spans.run(span, work);
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/** Does work within a child of the active span, if there is one. */
export const inSpan = <Result>(name: string, options: SpanOptions, work: () => Promise<Result>): Promise<Result> =>
  within(activeSpan()?.child(name, options) ?? null, work);
