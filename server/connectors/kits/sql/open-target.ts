import { ConfigurationError } from '../../contract/errors.ts';
import type { SqlDatabase } from './dialect.ts';
import { ensureRejectedTable } from './rejects.ts';
import { claimState, ensureStateTable, type StateRow } from './state-row.ts';
import { adaptTable, createTable } from './tables.ts';
import { type ExistingTable, isMerge, type PlacedTarget, resolveTarget, type Target } from './target.ts';

/** What opening a stream needs beside the dialect. */
export interface TargetDatabase<Table extends ExistingTable> extends SqlDatabase {
  /** @throws ConfigurationError when a view, or anything else that takes no rows, has the name. */
  findTable(schema: string, table: string): Promise<Table | null>;
  /** A merge needs rows that the key tells apart. @throws ConfigurationError `key_not_unique` */
  ensureUniqueKey(target: PlacedTarget, table: Table, state: StateRow): Promise<void>;
  /** Columns of `_pipeline_state` that only this database has. */
  extraState?: readonly string[];
  /** Runs `work` in a transaction: in the open one, where statements that define tables do not end it. */
  atomically<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Finishes what an earlier attempt left, before the table is looked at. */
  resume?(state: StateRow, target: PlacedTarget): Promise<void>;
  /** Where chunks of a custom run are written side by side, the table has to exist before the first of them commits. */
  createsForWindows: boolean;
}

/**
 * Claims the stream and prepares the table for its columns. Call it under the lock for definitions. A missing table is
 * created together with its first rows, so that a run which commits nothing leaves nothing behind.
 */
export async function openTarget<Table extends ExistingTable>(
  db: TargetDatabase<Table>,
  target: PlacedTarget,
): Promise<{ target: Target<Table>; state: StateRow }> {
  const { schema, table, mode } = target;
  await ensureStateTable(db, schema, db.extraState);
  if (target.rejects) await ensureRejectedTable(db, schema);
  const claimed = await db.atomically(() => claimState(db, target, db.extraState));
  await db.resume?.(claimed, target);
  let existing = await db.findTable(schema, table);
  const was_emptied = existing !== null && claimed.left_rows && !(await hasRows(db, target));
  if (existing === null || was_emptied) claimed.forgetRows();
  const lost_columns = existing && mode !== 'overwrite' ? await adaptTable(db, target, existing) : [];
  const state = { ...claimed, held: { ...claimed.held, has_table: existing !== null, was_emptied, lost_columns } };
  if (existing && isMerge(target)) await db.ensureUniqueKey(target, existing, state);
  if (!existing && mode === 'update') {
    throw new ConfigurationError(
      'table_missing',
      `Table ${schema}.${table} does not exist. update changes rows of an existing table`,
    );
  }
  if (!existing && target.replace_window && db.createsForWindows) {
    await createTable(db, resolveTarget(db.dialect, target, null), { name: table, key: [] });
    existing = await db.findTable(schema, table);
  }
  return { target: resolveTarget(db.dialect, target, existing), state };
}

async function hasRows({ session, dialect }: SqlDatabase, { schema, table }: PlacedTarget): Promise<boolean> {
  const { rows } = await session.query(`select 1 from ${dialect.relation(schema, table)} limit 1`, { slow: true });
  return rows.length > 0;
}
