import { parsePending, pendingState, type PendingTable, PENDING_TABLE } from '../../kits/sql/publish/pending-table.ts';
import type { StateRow } from '../../kits/sql/state-row.ts';
import type { MysqlSession } from '../connection/session.ts';
import { relation } from '../connection/sql.ts';
import { swapIn } from './swap.ts';

/** Notes the pending table, in a transaction of its own. @throws FencedError */
export async function notePending(session: MysqlSession, state: StateRow, pending: PendingTable | null): Promise<void> {
  await session.query('start transaction');
  await state.note(pendingState(pending));
  await session.query('commit');
}

/** Resumes what an earlier attempt left: an uncommitted table is dropped, a committed one is swapped in. */
export async function resumePending(session: MysqlSession, schema: string, state: StateRow): Promise<void> {
  const pending = parsePending(state.extra[PENDING_TABLE]);
  if (!pending) return;
  const { name, table, phase } = pending;
  if (phase === 'swapping') await swapIn(session, { schema, table, fresh: name });
  else await session.query(`drop table if exists ${relation(schema, name)}`, { slow: true });
  await notePending(session, state, null);
}
