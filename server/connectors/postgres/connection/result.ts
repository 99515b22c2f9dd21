export type Row = (string | null)[];

export interface QueryResult {
  rows: Row[];
  /** Number of rows affected. */
  count: number;
}
