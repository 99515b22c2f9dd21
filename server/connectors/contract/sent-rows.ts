import type { SENT_OPERATIONS } from '../../../db/schema/closed-sets.ts';
import type { Cell } from './cells.ts';
import type { WriteCounts } from './write-counts.ts';

export type SentOperation = (typeof SENT_OPERATIONS)[number];

/** What a destination compares rows by. Depends on settings and columns alone. */
export interface RowComparer {
  /** Changes when rows go to another service, object or key, so that nothing of them is known there. */
  place: string;
  /** The key as JSON, a list of values; null when one of them is null. */
  key(row: readonly Cell[]): string | null;
  /** All that the destination would receive of the row. */
  content(row: readonly Cell[]): string;
}

/** A row that the destination has to hear of. */
export interface DifferentRow {
  operation: SentOperation;
  key: string;
  /** Empty for a delete. */
  row: readonly Cell[];
}

/** Why a row was not accepted. */
export interface Rejection {
  code: string;
  message: string;
  status: number | null;
  answer: string | null;
}

export interface AnsweredRow {
  row: DifferentRow;
  /** Absent: accepted. */
  rejection?: Rejection;
}

/**
 * The rows that a destination without a state holds of the stream. The control database keeps their keys and hashes, and
 * changes them only for rows that the destination has accepted.
 */
export interface SentRows {
  /** Totals of the stream run. */
  readonly counts: WriteCounts;
  /** Rows sent earlier that the read has not contained so far. */
  readonly missing: number;
  /** Null: the row is as it was sent last, or has no usable key. Call it once for each row of the read. */
  compare(row: readonly Cell[]): DifferentRow | null;
  /** Ends the sends that were announced before and announces the next ones, in one write. Call it before they are sent. */
  record(answered: readonly AnsweredRow[], next: readonly DifferentRow[], bytes: number): Promise<void>;
  /** The rows that `missing` counts, for a complete read alone. */
  missingRows(): AsyncIterable<DifferentRow>;
  /** The read contains all rows of the stream, so a missing row is gone. */
  readonly complete: boolean;
}
