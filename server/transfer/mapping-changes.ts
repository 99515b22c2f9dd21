import type { Batch, Cell, RowChange } from '../connectors/contract/connector.ts';
import { DELETE } from '../connectors/contract/changes.ts';

export interface ChangeFilter {
  tests: { index: number; matches(cell: Cell): boolean }[];
  /** Indexes of the columns that are the key at the destination. */
  key: ReadonlySet<number>;
  /** How many columns go to the destination; those behind them were read to filter by. */
  width: number;
  /** The destination keeps every change as a row. */
  history: boolean;
}

/**
 * Filters rows that something happened to. A row that no longer fits is gone as far as the destination is concerned; a
 * history just does not have it. What a filter would have held back is not told of a deleted row either.
 */
export function filterChanges(batch: Batch, filter: ChangeFilter): Batch {
  const rows: Cell[][] = [];
  const changes: RowChange[] = [];
  for (const [index, row] of batch.rows.entries()) {
    const change = batch.changes?.[index];
    const kept = change && keep(row, change, filter);
    if (!kept) continue;
    rows.push(row);
    changes.push(kept);
  }
  return { ...batch, rows, changes };
}

function keep(row: Cell[], change: RowChange, { tests, key, width, history }: ChangeFilter): RowChange | null {
  if (change.operation === 'truncate') return history && row.every((cell) => cell === null) ? null : change;
  const { unchanged } = change.operation === 'upsert' ? change : {};
  const fits =
    change.operation === 'upsert' &&
    tests.every(({ index, matches }) => unchanged?.includes(index) || matches(row[index] ?? null));
  if (fits) return unchanged ? { operation: 'upsert', unchanged: unchanged.filter((index) => index < width) } : change;
  if (change.operation === 'upsert' && history) return null;
  if (tests.length > 0) for (const index of row.keys()) if (!key.has(index)) row[index] = null;
  return DELETE;
}
