export type Row = (string | null)[];

export interface QueryResult {
  rows: Row[];
  /** Number of rows changed. */
  count: number;
  /** `Records: 3  Duplicates: 1  Warnings: 0` after statements that report it. */
  info: string;
  warnings: number;
}
