/** Totals of this stream run as committed so far, earlier attempts included. */
export interface WriteCounts {
  rows_loaded: number;
  rows_updated: number;
  rows_deleted: number;
  bytes_loaded: number;
  /** Rows that the destination did not accept. Absent: it accepts all rows or fails. */
  rows_rejected?: number;
}
