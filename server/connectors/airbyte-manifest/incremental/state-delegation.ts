import type { StreamState } from '../../contract/connector.ts';
import type { AnyStream, DeclarativeStream, StateDelegatingStream } from '../components/stream-components.ts';
import { parseDuration, PyTime } from '../interpolation/python-time.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { normalOf } from './datetime-cursor.ts';
import { microsOf } from '../../cells/timestamp-text.ts';

export interface DelegatedStream {
  stream: DeclarativeStream;
  state: StreamState | null;
  /** Added to every state of the read. */
  note: Record<string, unknown>;
}

/** Whether a stream can continue from a state. */
export const isIncremental = (stream: AnyStream): boolean =>
  stream.type === 'DeclarativeStream'
    ? Boolean(stream.incremental_sync)
    : Boolean(stream.full_refresh_stream.incremental_sync && stream.incremental_stream.incremental_sync);

/**
 * The stream to read. A StateDelegatingStream reads its full stream until that is complete, then the incremental one,
 * and the full one again when the state is older than the retention period of the service.
 */
export function delegatedStream(runtime: Runtime, stream: AnyStream, state: StreamState | null): DelegatedStream {
  if (stream.type === 'DeclarativeStream') return { stream, state, note: {} };
  const full = { stream: stream.full_refresh_stream, state, note: {} };
  const isCaughtUp = state?.caught_up === true || (state !== null && state.complete !== false);
  if (!isCaughtUp) return full;
  if (isExpired(runtime, stream, state)) return { ...full, state: null };
  const incremental = stream.incremental_stream;
  return { stream: incremental, state: handedOver(incremental, state), note: { caught_up: true } };
}

/** A stream without partitions continues from the partition that lags behind the most. */
function handedOver({ retriever }: DeclarativeStream, state: StreamState): StreamState {
  const isPartitioned = (retriever.partition_router ?? []).length > 0;
  if (isPartitioned || Object.keys(state.partitions ?? {}).length === 0) return state;
  return { cursor: state.cursor, boundary: [], read_until: readUntil(state), complete: true };
}

function readUntil(state: StreamState): string | null {
  const partitions = Object.values((state.partitions ?? {}) as Record<string, { read_until?: unknown }>);
  const all = (partitions.length > 0 ? partitions : [state]).map(({ read_until }) => read_until);
  const known = all.filter((one) => typeof one === 'string').map(normalOf);
  return known.length === all.length ? (known.toSorted()[0] ?? null) : null;
}

function isExpired(runtime: Runtime, stream: StateDelegatingStream, state: StreamState): boolean {
  const { templates, scope, ctx } = runtime;
  const text = stream.api_retention_period
    ? templates.text(stream.api_retention_period, { ...scope, parameters: stream.$parameters ?? {} })
    : null;
  const period = text === null ? null : parseDuration(text);
  if (!period) return false;
  const cursor = typeof state.cursor === 'string' ? normalOf(state.cursor) : null;
  const asOf = readUntil(state) ?? cursor;
  return asOf === null || microsOf(asOf) < new PyTime(ctx.now().getTime() * 1000).plus(period, -1).micros;
}
