import type { DuckDBConnection } from '@duckdb/node-api';
import { execute } from '../connection/engine.ts';
import { merge } from './merge.ts';
import { isMerge, type Stage } from './stage.ts';
import { createTable, findTable, type Target } from './tables.ts';
import { deleteWindow } from './replace-window.ts';

/** What was there before and is changed, or gone or marked as such. */
export interface Loaded {
  updated: number;
  deleted: number;
}

/** Brings the staged rows into the table, in the open transaction. */
export async function loadStage(connection: DuckDBConnection, target: Target, stage: Stage): Promise<Loaded> {
  const there = (await findTable(connection, target.schema, target.table)) !== null;
  if (there && target.mode === 'overwrite') await execute(connection, `DROP TABLE ${target.relation}`);
  if (!there || target.mode === 'overwrite') await createTable(connection, target);
  if (isMerge(target)) return merge(connection, target, stage);
  const deleted = target.replace_window ? await deleteWindow(connection, target, target.replace_window) : 0;
  await stage.insert();
  return { updated: 0, deleted };
}
