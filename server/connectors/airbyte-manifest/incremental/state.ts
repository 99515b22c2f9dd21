import type { StreamState } from '../../contract/connector.ts';
import { timestampText } from '../../cells/timestamp-text.ts';
import { NO_PROGRESS, type ReadProgress, progressOf } from '../../kits/rest/progress.ts';

/** Beyond this number, partitions share one cursor. */
const MAX_PARTITIONS = 10_000;

/** How far a stream has been read, partition by partition. */
export class ReadingState {
  readonly #partitions = new Map<string, ReadProgress>();
  /** States from which the next read continues the parent streams. */
  readonly parents: Record<string, StreamState>;
  /** For partitions without progress of their own. */
  #all: ReadProgress;
  #isShared: boolean;
  #highest: string | null = null;

  constructor(
    state: StreamState | null,
    private readonly options: {
      partitioned: boolean;
      shared: boolean;
      startedAt: Date;
      note: Record<string, unknown>;
      normalOf(text: string): string;
    },
  ) {
    const { normalOf } = options;
    const storedProgress = (one: unknown) => progressOf((one ?? {}) as Record<string, unknown>, normalOf);
    this.#isShared = options.shared || state?.shared === true;
    this.parents = { ...(state?.parents as Record<string, StreamState> | undefined) };
    const partitions = (state?.partitions ?? {}) as Record<string, unknown>;
    for (const [key, one] of Object.entries(partitions)) this.#partitions.set(key, storedProgress(one));
    const known = this.#partitions.size > 0 && !this.#isShared;
    this.#all = state === null || known ? NO_PROGRESS : storedProgress(state);
    if (state && !('complete' in state)) this.#all = { ...this.#all, complete: true };
    this.#highest = typeof state?.cursor === 'string' ? normalOf(state.cursor) : null;
  }

  of(key: string): ReadProgress {
    return (this.#isShared ? null : this.#partitions.get(key)) ?? this.#all;
  }

  note(key: string, progress: ReadProgress): void {
    if (progress.cursor !== null && (this.#highest === null || progress.cursor > this.#highest))
      this.#highest = progress.cursor;
    if (!this.options.partitioned) {
      this.#all = progress;
      return;
    }
    if (this.#isShared) return;
    this.#partitions.set(key, progress);
    if (this.#partitions.size > MAX_PARTITIONS) {
      this.#isShared = true;
      this.#partitions.clear();
    }
  }

  /** Everything has been read. */
  finish(): void {
    if (!this.options.partitioned || !this.#isShared) return;
    const read_until = timestampText(this.options.startedAt.getTime() * 1000);
    this.#all = { cursor: this.#highest, boundary: [], read_until, complete: true };
  }

  /** Null: a read that is cut short here starts from the beginning. @param shown the form of the cursor that users see */
  state(isFinished: boolean, shown: (normal: string) => string): StreamState | null {
    const cursor = this.#highest === null ? null : shown(this.#highest);
    const parents = isFinished && Object.keys(this.parents).length > 0 ? { parents: this.parents } : {};
    const { note } = this.options;
    if (!this.options.partitioned) return { ...this.#all, cursor, ...note };
    if (this.#isShared) return isFinished ? { ...this.#all, cursor, shared: true, ...parents, ...note } : null;
    return { cursor, complete: isFinished, partitions: Object.fromEntries(this.#partitions), ...parents, ...note };
  }
}
