import type { ReadyStream, StoredRunError, StreamRow } from '../../db/schema/index.ts';
import type { Checkpoint } from './claim-stream.ts';

/** The types that the columns of a stream were written with, and the details of its source. */
export type LoadedStream = Pick<StreamRow, 'loaded_columns' | 'loaded_details'>;

/** How an attempt at a stream ended. */
export type Outcome =
  /**
   * `rolled_over`: a continuous run has ended wherever in the log it was. `commit`: the last one at the destination, if it
   * is not recorded yet. `loaded`: what the next run compares the stream with, if it has changed.
   */
  | { kind: 'succeeded'; rolled_over?: boolean; commit?: Checkpoint; loaded?: LoadedStream }
  /** The new table is complete at the destination, and is published with those of the other streams. */
  | { kind: 'ready'; ready: ReadyStream }
  | { kind: 'stopped' }
  /** `of_stream`: it says nothing about the source or destination that it came from. */
  | { kind: 'failed'; error: StoredRunError; of_stream?: boolean }
  /** `wait_until`: the server asked for this wait, so the attempt does not count. */
  | { kind: 'retry'; error: StoredRunError; wait_until: Date | null; backoff_base_seconds: number }
  /** The worker shuts down; another one continues at once. */
  | { kind: 'released' };
