import type { DestinationSyncMode } from '../../connectors/contract/connector.ts';

/** A merge costs more than an append, so its checkpoints are further apart. */
const SIZE_FACTOR: Record<DestinationSyncMode, number> = {
  append: 1,
  overwrite: 1,
  append_dedup: 4,
  update: 4,
  soft_delete: 4,
};
/** Where merges overlap, the first one begins early, and little is left for the last one. */
const OVERLAPPING_FACTOR = 1 / 4;
const MAX_MS = 15_000;

/** When the next checkpoint is due: after a number of bytes, or after 15 s. */
export class CheckpointPace {
  readonly #maxBytes: number;
  #bytes = 0;
  #since = performance.now();

  /** @param overlaps rows are written while a checkpoint is under way */
  constructor(mode: DestinationSyncMode, bytes: number, overlaps = false) {
    this.#maxBytes = bytes * (overlaps ? OVERLAPPING_FACTOR : SIZE_FACTOR[mode]);
  }

  /** Since the last checkpoint. */
  get bytes(): number {
    return this.#bytes;
  }

  due(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes >= this.#maxBytes || performance.now() - this.#since >= MAX_MS;
  }

  reset(): void {
    this.#bytes = 0;
    this.#since = performance.now();
  }
}
