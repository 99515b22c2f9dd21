import type { ExtraState, StateRow } from '../../kits/sql/state-row.ts';
import type { MysqlSession } from '../connection/session.ts';
import { relation } from '../connection/sql.ts';
import { swapIn } from './swap.ts';

/**
 * A table that is created aside. `loading`: nothing in it is committed, and the next attempt drops it. `swapping`: its
 * rows are committed, and the next attempt swaps it in.
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

/** Notes the pending table, in a transaction of its own. @throws FencedError */
export async function notePending(session: MysqlSession, state: StateRow, pending: PendingTable | null): Promise<void> {
  await session.query('start transaction');
  await state.note(pendingState(pending));
  await session.query('commit');
}

/** Resumes what an earlier attempt left: an uncommitted table is dropped, a committed one is swapped in. */
export async function resumePending(session: MysqlSession, schema: string, state: StateRow): Promise<void> {
  const text = state.extra[PENDING_TABLE];
  if (!text) return;
  const { name, table, phase } = JSON.parse(text) as PendingTable;
  if (phase === 'swapping') await swapIn(session, { schema, table, fresh: name });
  else await session.query(`drop table if exists ${relation(schema, name)}`, { slow: true });
  await notePending(session, state, null);
}
