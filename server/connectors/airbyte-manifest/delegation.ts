import type { StreamState } from '../contract/connector.ts';
import type { AnyStream, DeclarativeStream, StateDelegatingStream } from './components/stream-components.ts';
import { parseSpan, PyTime } from './interpolation/python-time.ts';
import type { Runtime } from './runtime.ts';
import { normalOf } from './incremental/state.ts';
import { microsOf } from '../cells/timestamp-text.ts';

export interface Chosen {
  stream: DeclarativeStream;
  state: StreamState | null;
  /** What every state of the read says beside its progress. */
  note: Record<string, unknown>;
}

/** Whether a stream can go on from a state. */
export const isIncremental = (stream: AnyStream): boolean =>
  stream.type === 'DeclarativeStream'
    ? Boolean(stream.incremental_sync)
    : Boolean(stream.full_refresh_stream.incremental_sync && stream.incremental_stream.incremental_sync);

/**
 * The stream that is read from a state: of a StateDelegatingStream the full one until it came to its end, then the
 * incremental one, unless the service has forgotten by now what happened since.
 */
export function chosenStream(runtime: Runtime, stream: AnyStream, state: StreamState | null): Chosen {
  if (stream.type === 'DeclarativeStream') return { stream, state, note: {} };
  const full = { stream: stream.full_refresh_stream, state, note: {} };
  const isCaughtUp = state?.caught_up === true || (state !== null && state.complete !== false);
  if (!isCaughtUp) return full;
  if (isForgotten(runtime, stream, state)) return { ...full, state: null };
  const incremental = stream.incremental_stream;
  return { stream: incremental, state: handedOver(incremental, state), note: { caught_up: true } };
}

/** A stream without partitions goes on where the least of those before it had come. */
function handedOver({ retriever }: DeclarativeStream, state: StreamState): StreamState {
  const isPartitioned = (retriever.partition_router ?? []).length > 0;
  if (isPartitioned || Object.keys(state.partitions ?? {}).length === 0) return state;
  return { cursor: state.cursor, boundary: [], read_until: readUntil(state), complete: true };
}

function readUntil(state: StreamState): string | null {
  const parts = Object.values((state.partitions ?? {}) as Record<string, { read_until?: unknown }>);
  const all = (parts.length > 0 ? parts : [state]).map(({ read_until }) => read_until);
  const known = all.filter((one) => typeof one === 'string').map(normalOf);
  return known.length === all.length ? (known.toSorted()[0] ?? null) : null;
}

function isForgotten(runtime: Runtime, stream: StateDelegatingStream, state: StreamState): boolean {
  const { templates, scope, ctx } = runtime;
  const text = stream.api_retention_period
    ? templates.text(stream.api_retention_period, { ...scope, parameters: stream.$parameters ?? {} })
    : null;
  const period = text === null ? null : parseSpan(text);
  if (!period) return false;
  const cursor = typeof state.cursor === 'string' ? normalOf(state.cursor) : null;
  const asOf = readUntil(state) ?? cursor;
  return asOf === null || microsOf(asOf) < new PyTime(ctx.now().getTime() * 1000).plus(period, -1).micros;
}
