/**
 * What happened to a row of the source.
 *
 * - `upsert`: the row exists with the given cells. `unchanged` lists the indexes of columns that the source did not send
 *   because they kept their values; their cells are null. Such a row updates an existing one and never inserts.
 * - `delete`: the row is gone. Only the cells of the key matter.
 * - `truncate`: all rows before it are gone, including those in the table. Its cells do not matter.
 *
 * Destinations apply changes in the order of arrival; the cursor plays no role:
 *
 * | Mode | `upsert` | `delete`, and what `truncate` removes |
 * |---|---|---|
 * | `append` | inserts a row; unchanged cells are null | inserts a row |
 * | `append_dedup` | inserts or replaces the row with this key | deletes the row |
 * | `soft_delete` | as above, and clears the deletion mark | sets `_deleted_at` and keeps the other cells |
 * | `update` | replaces the row if it exists | nothing |
 */
export type RowChange =
  | { operation: 'upsert'; unchanged?: readonly number[] }
  | { operation: 'delete' }
  | { operation: 'truncate' };

export const UPSERT: RowChange = { operation: 'upsert' };
export const DELETE: RowChange = { operation: 'delete' };
export const TRUNCATE: RowChange = { operation: 'truncate' };
/** The column in which `soft_delete` stores the time of deletion; null if the row exists. */
export const DELETED_AT = '_deleted_at';

/** How far a CDC consumer lags behind its source. */
export interface LogLag {
  /** Bytes of the change log that the source retains for the consumer. */
  bytes: number;
  /** Since the newest change that has been read was committed; 0: everything has been read. Absent: not measured. */
  seconds?: number;
  /** Whether that exceeds the limit in the settings. */
  is_high: boolean;
  /** Whether the settings ask to release the log at this lag, so that the source does not run out of space. */
  is_over?: boolean;
  /** The source can release more of it, which takes as long as reading that much log: `SourceConnector.lag` has it do so. */
  shrinks?: boolean;
}
