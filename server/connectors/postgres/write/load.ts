import type { Cell } from '../../contract/connector.ts';
import { StagedChanges, unusedPrefix } from '../../kits/sql/staged-changes.ts';
import type { Rejects } from '../../kits/sql/rejects.ts';
import type { Stage } from './merge.ts';
import { mergeRows, stageAsItIs } from './merge-rejects.ts';
import { deleteWindow } from './replace-window.ts';
import type { PgSession } from '../connection/session.ts';
import { derivedName, identifier, relation, shortHash } from '../connection/sql.ts';
import { swapIn } from './swap.ts';
import { createStage, createTable } from './tables.ts';
import type { Target } from './target.ts';

/** What a mode does with the copied rows. Both steps run in the transaction that the state is committed in. */
export interface Load {
  /** Rows may become visible before the end of the stream. */
  readonly incremental: boolean;
  /** Makes ready for COPY. @returns where to copy to, quoted, and the options of the COPY. */
  prepare(session: PgSession): Promise<{ into: string; freeze: boolean }>;
  /** Takes changes: the column of the stage that says what happened to a row. Absent: they are rows like others. */
  readonly change?: string;
  /** What was noted since `prepare`; asked for by the first batch that has changes. */
  changes?(): StagedChanges;
  /** Forgets the rows copied since `prepare`, and has those of the table removed. */
  truncate?(session: PgSession): Promise<void>;
  /** A row that could not be copied is there nevertheless; absent: what was not copied stays as it is. */
  present?(session: PgSession, row: readonly Cell[]): Promise<void>;
  /**
   * Brings the copied rows into place. `rejects`: where to put those that cannot be.
   * @returns rows that replaced others, rows that are gone, and those of the copied ones that were rejected
   */
  complete(
    session: PgSession,
    rejects: Rejects | null,
  ): Promise<{ updated: number; deleted: number; rejected?: number }>;
}

export function loadOf(target: Target): Load {
  switch (target.mode) {
    case 'overwrite':
      return overwrite(target);
    case 'append_dedup':
    case 'soft_delete':
    case 'update':
      return merge(target);
    default:
      return append(target);
  }
}

function append(target: Target): Load {
  let present = target.existing !== null;
  let deleted = 0;
  return {
    // The rows of a window go and come in one commit: after a part of them, what is still to come would be missing.
    incremental: !target.replace_window,
    async prepare(session) {
      const freeze = !present;
      if (!present) await createTable(session, target, { name: target.table, primaryKey: false });
      present = true;
      if (target.replace_window) deleted = await deleteWindow(session, target, target.replace_window);
      return { into: target.relation, freeze };
    },
    complete: async () => ({ updated: 0, deleted }),
  };
}

/**
 * The new table is made, filled and swapped in by one transaction: until the commit nobody sees it and the old one can
 * be read, and a crash at any point leaves nothing behind. Its index comes after the rows, which is faster.
 */
function overwrite(target: Target): Load {
  const suffix = `__new_${shortHash(target.connection_id, target.stream_id, target.stream_run_id, target.fence)}`;
  const fresh = derivedName(target.table, suffix);
  return {
    incremental: false,
    async prepare(session) {
      await createTable(session, target, { name: fresh, primaryKey: false });
      return { into: relation(target.schema, fresh), freeze: true };
    },
    async complete(session) {
      await swapIn(session, target, fresh);
      return { updated: 0, deleted: 0 };
    },
  };
}

/** The stage is a temporary table: not logged, and gone with the session whatever happens. */
function merge(target: Target): Load {
  let present = target.existing !== null;
  const prefix = unusedPrefix(target.columns.map(({ name }) => name));
  const stage: Stage = {
    name: `stage_${shortHash(target.connection_id, target.stream_id, target.stream_run_id, target.fence)}`,
    sequence: `${prefix}seq`,
    change: `${prefix}change`,
    changes: null,
    complete: target.complete === true && target.mode === 'soft_delete',
  };
  const changes = () => (stage.changes ??= new StagedChanges());
  return {
    // A part of a complete read would have the rest marked as deleted.
    incremental: !stage.complete,
    change: stage.change,
    changes,
    async prepare(session) {
      if (!present) await createTable(session, target, { name: target.table, primaryKey: true });
      present = true;
      stage.changes = null;
      await createStage(session, target, stage);
      return { into: identifier(stage.name), freeze: false };
    },
    async truncate(session) {
      await session.query(`truncate ${identifier(stage.name)}`);
      changes().truncate();
    },
    ...(stage.complete && { present: (session, row) => stageAsItIs({ session, target, stage }, row) }),
    complete: (session, rejects) => mergeRows({ session, target, stage }, rejects),
  };
}
