import type { TargetColumn } from '../../contract/connector.ts';
import { NO_COUNTS, type StateRow } from '../../kits/sql/state-row.ts';
import { REJECTED_TABLE } from '../../kits/sql/rejects.ts';
import type { PlacedTarget } from '../../kits/sql/target.ts';
import type { PgSession } from '../connection/session.ts';
import { literal, relation } from '../connection/sql.ts';

/** Column of `_pipeline_state` for a new table that is complete and not published; null: there is none. */
export const READY = 'ready';

/** A table that waits to be published, as `_pipeline_state` describes it. Committed together with the table. */
export interface ReadyTable {
  publish_with: string;
  stream_run_id: string;
  /** The new table. */
  fresh: string;
  /** The table that it replaces. */
  table: string;
  columns: TargetColumn[];
  primary_key: string[];
  /** Absent: an earlier version wrote this. */
  inexact_values?: 'refuse' | 'allow';
}

export const readyTable = (target: PlacedTarget, fresh: string): ReadyTable => ({
  publish_with: target.publish_with!,
  stream_run_id: target.stream_run_id,
  fresh,
  table: target.table,
  columns: target.columns,
  primary_key: target.primary_key,
  inexact_values: target.inexact_values,
});

export const parseReady = (text: string | null | undefined): ReadyTable | null =>
  text == null ? null : (JSON.parse(text) as ReadyTable);

/** Keeps a table that an earlier attempt of the same run has completed, and removes any other. */
export async function resumeReady(session: PgSession, state: StateRow, target: PlacedTarget): Promise<void> {
  const left = parseReady(state.extra[READY]);
  if (!left) return;
  const isOwn = left.stream_run_id === target.stream_run_id && left.publish_with === target.publish_with;
  if (isOwn && state.committed) {
    state.committed.ready = true;
    return;
  }
  await dropReady(session, target.schema, left);
  await state.note({ [READY]: null });
  // What this stream run has committed is gone.
  if (left.stream_run_id === target.stream_run_id) Object.assign(state, { committed: null, counts: NO_COUNTS });
}

/** The rows that could not be loaded belong to the table that is removed. */
export async function dropReady(session: PgSession, schema: string, left: ReadyTable): Promise<void> {
  await session.query(`drop table if exists ${relation(schema, left.fresh)}`);
  const rejected = relation(schema, REJECTED_TABLE);
  const { rows } = await session.query('select to_regclass($1)', { values: [rejected] });
  if (rows[0]?.[0] == null) return;
  await session.query(`delete from ${rejected} where stream_run_id = ${literal(left.stream_run_id)}`);
}
