import type { DestinationSyncMode } from '../connectors/define.ts';

const MB = 1024 * 1024;
/** A merge costs more than an append, so it is done for more rows at once. */
const BYTES: Record<DestinationSyncMode, number> = {
  append: 32 * MB,
  overwrite: 32 * MB,
  append_dedup: 128 * MB,
  update: 128 * MB,
  soft_delete: 128 * MB,
};
const MAX_MS = 15_000;

/** When the next checkpoint is due: after so many bytes, or so much time with rows waiting. */
export class CheckpointPace {
  #bytes = 0;
  #since = performance.now();

  constructor(private readonly mode: DestinationSyncMode) {}

  due(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes >= BYTES[this.mode] || performance.now() - this.#since >= MAX_MS;
  }

  reset(): void {
    this.#bytes = 0;
    this.#since = performance.now();
  }
}
