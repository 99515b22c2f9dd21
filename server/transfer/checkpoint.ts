import type { DestinationSyncMode } from '../connectors/contract/connector.ts';

/** A merge costs more than an append, so it is done for more rows at once. */
const TIMES: Record<DestinationSyncMode, number> = {
  append: 1,
  overwrite: 1,
  append_dedup: 4,
  update: 4,
  soft_delete: 4,
};
const MAX_MS = 15_000;

/** When the next checkpoint is due: after so many bytes, or so much time with rows waiting. */
export class CheckpointPace {
  readonly #most: number;
  #bytes = 0;
  #since = performance.now();

  constructor(mode: DestinationSyncMode, bytes: number) {
    this.#most = bytes * TIMES[mode];
  }

  due(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes >= this.#most || performance.now() - this.#since >= MAX_MS;
  }

  reset(): void {
    this.#bytes = 0;
    this.#since = performance.now();
  }
}
