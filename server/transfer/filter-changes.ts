import type { Batch, Cell, RowChange } from '../connectors/contract/connector.ts';
import { DELETE } from '../connectors/contract/changes.ts';

/** Of one cell of a row. */
interface CellTest {
  index: number;
  matches(cell: Cell): boolean;
}

export interface ChangeFilter {
  /** Of values of the row, which deletes lack. */
  tests: readonly CellTest[];
  /** Of what describes the change, such as its operation. Every change has it. */
  change_tests: readonly CellTest[];
  /** Indexes of the columns that a delete keeps: its key, and what describes the change. */
  kept: ReadonlySet<number>;
  /** Number of columns that are written; those after them are read only to filter. */
  width: number;
  /** The destination keeps every change as a row. */
  history: boolean;
}

/**
 * Filters changed rows. A row that no longer matches becomes a delete, or is dropped when the destination keeps a
 * history. Deletes carry only their key and what describes the change when there are filters, so that they reveal nothing
 * the filter withholds.
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

function keep(row: Cell[], change: RowChange, filter: ChangeFilter): RowChange | null {
  const { tests, change_tests, kept, width, history } = filter;
  if (change_tests.some(({ index, matches }) => !matches(row[index] ?? null))) return null;
  if (change.operation === 'truncate') return history && row.every((cell) => cell === null) ? null : change;
  const { unchanged } = change.operation === 'upsert' ? change : {};
  const fits =
    change.operation === 'upsert' &&
    tests.every(({ index, matches }) => unchanged?.includes(index) || matches(row[index] ?? null));
  if (fits) return unchanged ? { operation: 'upsert', unchanged: unchanged.filter((index) => index < width) } : change;
  if (change.operation === 'upsert' && history) return null;
  if (tests.length + change_tests.length > 0) for (const index of row.keys()) if (!kept.has(index)) row[index] = null;
  return DELETE;
}
