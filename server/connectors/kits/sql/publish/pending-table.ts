import type { ExtraState } from '../state-row.ts';

/**
 * A table that is created aside and that a transaction alone does not remove. `loading`: nothing of it counts, and the
 * next attempt drops it. `swapping`: its rows count, and the next attempt swaps it in.
 */
export interface PendingTable {
  name: string;
  /** The table it replaces. */
  table: string;
  phase: 'loading' | 'swapping';
}

/** The column of `_pipeline_state` that names it. */
export const PENDING_TABLE = 'pending_table';

export const pendingState = (pending: PendingTable | null): ExtraState => ({
  [PENDING_TABLE]: pending && JSON.stringify(pending),
});

export const parsePending = (text: string | null | undefined): PendingTable | null =>
  text ? (JSON.parse(text) as PendingTable) : null;
