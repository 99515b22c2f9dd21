import type { Dialect } from './dialect.ts';
import { type StagedChanges, unusedPrefix } from './merge/staged-changes.ts';
import { shortHash } from './names.ts';
import type { Target } from './target.ts';
import type { StagedMerge } from './merge/staged-merge.ts';

/** A temporary table of rows that wait to be merged. All names are quoted, but for the prefix. */
export interface Stage {
  relation: string;
  /** The table for the last change of each key. */
  latest: string;
  /** The table for all rows of a stage that has to be merged in parts (merge-rejects.ts). */
  aside: string;
  /** The column that keeps the order of arrival. */
  sequence: string;
  /** The column that says what happened to a row (staged-changes.ts). */
  change: string;
  /** Null: whole rows only. */
  changes: StagedChanges | null;
  /** Rows of the table without a staged row of their key are gone. */
  complete: boolean;
  /** No column's name begins with it, nor do those of the stage. */
  prefix: string;
}

/** @param relation gives the quoted name of a temporary table */
export function stageOf({ identifier }: Dialect, target: Target, relation: (name: string) => string): Stage {
  const { connection_id, stream_id, stream_run_id, fence } = target;
  const name = `stage_${shortHash(connection_id, stream_id, stream_run_id, fence)}`;
  const prefix = unusedPrefix(target.columns.map((column) => column.name));
  return {
    relation: relation(name),
    latest: relation(`${name}_latest`),
    aside: relation(`${name}_all`),
    sequence: identifier(`${prefix}seq`),
    change: identifier(`${prefix}change`),
    changes: null,
    complete: target.complete === true && target.mode === 'soft_delete',
    prefix: `${prefix}_`,
  };
}

/** The rows of a stage whose columns have the names of the target's. */
export function stagedMerge({ identifier }: Dialect, target: Target, stage: Stage): StagedMerge {
  const columns = target.columns.map(({ name }, at) => ({
    staged: identifier(name),
    own: identifier(name),
    at,
    isKey: target.primary_key.includes(name),
  }));
  const { relation: from, latest, sequence, change, prefix, changes, complete } = stage;
  return { from, latest, columns, sequence, change, prefix, changes, complete };
}
