import type { StreamState } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import { NO_PROGRESS, type Progress } from './datetime-cursor.ts';

/** More partitions than that share one cursor. */
const MOST_PARTITIONS = 10_000;
/** How far a stream has been read, partition by partition. */
export class ReadingState {
  readonly #parts = new Map<string, Progress>();
  /** States of parent streams that the next read goes on from. */
  readonly parents: Record<string, StreamState>;
  /** Where partitions begin that have no progress of their own. */
  #all: Progress;
  #isShared: boolean;
  #highest: string | null = null;

  constructor(
    state: StreamState | null,
    private readonly options: { partitioned: boolean; shared: boolean; begun: Date; note: Record<string, unknown> },
  ) {
    this.#isShared = options.shared || state?.shared === true;
    this.parents = { ...(state?.parents as Record<string, StreamState> | undefined) };
    const parts = (state?.partitions ?? {}) as Record<string, unknown>;
    for (const [key, part] of Object.entries(parts)) this.#parts.set(key, progressOf(part));
    const known = this.#parts.size > 0 && !this.#isShared;
    this.#all = state === null || known ? NO_PROGRESS : progressOf(state);
    if (state && !('complete' in state)) this.#all = { ...this.#all, complete: true };
    this.#highest = typeof state?.cursor === 'string' ? normalOf(state.cursor) : null;
  }

  of(key: string): Progress {
    return (this.#isShared ? null : this.#parts.get(key)) ?? this.#all;
  }

  note(key: string, progress: Progress): void {
    if (progress.cursor !== null && (this.#highest === null || progress.cursor > this.#highest))
      this.#highest = progress.cursor;
    if (!this.options.partitioned) {
      this.#all = progress;
      return;
    }
    if (this.#isShared) return;
    this.#parts.set(key, progress);
    if (this.#parts.size > MOST_PARTITIONS) {
      this.#isShared = true;
      this.#parts.clear();
    }
  }

  /** Everything was read. */
  finish(): void {
    if (!this.options.partitioned || !this.#isShared) return;
    const read_until = timestampText(this.options.begun.getTime() * 1000);
    this.#all = { cursor: this.#highest, boundary: [], read_until, complete: true };
  }

  /** Null: a read that is cut short here has to begin anew. @param shown how users see a cursor */
  state(isFinished: boolean, shown: (normal: string) => string): StreamState | null {
    const cursor = this.#highest === null ? null : shown(this.#highest);
    const parents = isFinished && Object.keys(this.parents).length > 0 ? { parents: this.parents } : {};
    const { note } = this.options;
    if (!this.options.partitioned) return { ...this.#all, cursor, ...note };
    if (this.#isShared) return isFinished ? { ...this.#all, cursor, shared: true, ...parents, ...note } : null;
    return { cursor, complete: isFinished, partitions: Object.fromEntries(this.#parts), ...parents, ...note };
  }
}

function progressOf(value: unknown): Progress {
  const { cursor, boundary, read_until, complete } = (value ?? {}) as Record<string, unknown>;
  return {
    cursor: typeof cursor === 'string' ? normalOf(cursor) : null,
    boundary: Array.isArray(boundary) ? boundary.filter((one) => typeof one === 'string') : [],
    read_until: typeof read_until === 'string' ? normalOf(read_until) : null,
    complete: complete === true,
  };
}

export function normalOf(text: string): string {
  const micros = /^-?\d{9,}$/.test(text) ? Number(text) * 1_000_000 : microsOf(text);
  if (Number.isFinite(micros)) return timestampText(micros);
  throw new ConfigurationError('invalid_cursor', `"${text.slice(0, 100)}" is no value of the cursor`);
}
