import type { Cell } from '../../contract/connector.ts';
import { StagedChanges, unusedPrefix } from '../../kits/sql/staged-changes.ts';
import type { Rejects } from '../../kits/sql/rejects.ts';
import type { Stage } from './merge.ts';
import { mergeRows, stageAsItIs } from './merge-rejects.ts';
import { replaceWindow } from './replace-window.ts';
import type { MysqlSession } from '../connection/session.ts';
import { columnList, derivedName, relation, shortHash } from '../connection/sql.ts';
import type { PendingTable, StateRow } from './state-table.ts';
import { hasAttachments, swapIn } from './swap.ts';
import { addMissingColumns, createStage, createTable, findTable } from './tables.ts';
import { widenColumns } from './widen.ts';
import type { Target } from './target.ts';

/**
 * What a mode does with the rows. Whatever defines a table commits the open transaction, so all of that happens in
 * `prepare`, before the transaction, and in `settle`, after it.
 */
export interface Load {
  /** Rows may become visible before the end of the stream. */
  readonly incremental: boolean;
  /** Makes the table that takes the rows. @returns its quoted name. */
  prepare(): Promise<string>;
  /** Takes changes: the column of the table of `prepare` that says what happened to a row; it comes last. */
  readonly change?: string;
  /** What was noted since `prepare`; asked for by the first batch that has changes. */
  changes?(): StagedChanges;
  /** Forgets the rows loaded since `prepare`, and has those of the table removed. */
  truncate?(): Promise<void>;
  /** A row that could not be loaded is there nevertheless; absent: what was not loaded stays as it is. */
  present?(row: readonly Cell[]): Promise<void>;
  /**
   * In the transaction: brings the rows into place. `rejects`: where to put those that cannot be.
   * @returns rows that replaced others, loaded ones that were rejected, and what is still to be done
   */
  complete(rejects: Rejects | null): Promise<Completed>;
  /** After the commit: what no transaction can hold. */
  settle(): Promise<void>;
  /** The table that an attempt given up would leave. */
  readonly leftover: string | null;
}

interface Completed {
  updated: number;
  deleted?: number;
  rejected?: number;
  pending: PendingTable | null;
}

export interface Work {
  session: MysqlSession;
  target: Target;
  state: StateRow;
}

export function loadOf(work: Work): Load {
  switch (work.target.mode) {
    case 'overwrite':
      return overwrite(work);
    case 'append_dedup':
    case 'soft_delete':
    case 'update':
      return merge(work);
    default:
      return work.target.replace_window ? replaceWindow(work, work.target.replace_window) : append(work);
  }
}

const nothing = async () => {};

/** A crash before the first commit leaves the new table empty. */
function append({ session, target }: Work): Load {
  let present = target.existing !== null;
  return {
    incremental: true,
    leftover: null,
    async prepare() {
      if (!present) await createTable(session, target, target.table);
      present = true;
      return target.relation;
    },
    complete: async () => ({ updated: 0, pending: null }),
    settle: nothing,
  };
}

/**
 * The rows go into a new table, whose name the state table knows before it is made. The last transaction notes, with
 * the state, that the new table is to take the place of the old one; then it does. A crash in between leaves that note,
 * and the next to open the stream does it first of all: from the commit on the run counts as done, and is.
 */
function overwrite({ session, target, state }: Work): Load {
  const parts = [target.connection_id, target.stream_id, target.stream_run_id, target.fence];
  const fresh = derivedName(target.table, `__new_${shortHash(...parts)}`);
  const swap = { schema: target.schema, table: target.table, fresh };
  const freshRelation = relation(target.schema, fresh);
  const pending = (phase: PendingTable['phase']) => ({ name: fresh, table: target.table, phase });
  let copied = false;
  return {
    incremental: false,
    leftover: freshRelation,
    async prepare() {
      await state.note(pending('loading'));
      await createTable(session, target, fresh);
      return freshRelation;
    },
    async complete() {
      const old = await findTable(session, target.schema, target.table);
      copied = old !== null && (await hasAttachments(session, swap));
      if (!old || !copied) return { updated: 0, pending: pending('swapping') };
      // Commits the rows of the new table, which nobody sees.
      await addMissingColumns(session, target, old);
      await widenColumns(session, target, old);
      await session.query('start transaction');
      const columns = columnList(target.columns.map(({ name }) => name));
      await session.query(`delete from ${target.relation}`, { slow: true });
      await session.query(`insert into ${target.relation} (${columns}) select ${columns} from ${freshRelation}`, {
        slow: true,
      });
      return { updated: 0, pending: pending('loading') };
    },
    async settle() {
      if (copied) await session.query(`drop table if exists ${freshRelation}`, { slow: true });
      else await swapIn(session, swap);
      await state.note(null);
    },
  };
}

/** The stage is a temporary table: gone with the session whatever happens. */
function merge({ session, target }: Work): Load {
  let present = target.existing !== null;
  const prefix = unusedPrefix(target.columns.map(({ name }) => name));
  const name = `stage_${shortHash(target.stream_id)}`;
  const stage: Stage = {
    relation: relation(target.schema, name),
    latest: relation(target.schema, `${name}_latest`),
    aside: relation(target.schema, `${name}_all`),
    sequence: `${prefix}seq`,
    change: `${prefix}change`,
    changes: null,
    complete: target.complete === true && target.mode === 'soft_delete',
  };
  const changes = () => (stage.changes ??= new StagedChanges());
  return {
    // A part of a complete read would have the rest marked as deleted.
    incremental: !stage.complete,
    leftover: null,
    change: stage.change,
    changes,
    async prepare() {
      if (!present) await createTable(session, target, target.table);
      present = true;
      stage.changes = null;
      await createStage(session, target, stage);
      return stage.relation;
    },
    async truncate() {
      // Not TRUNCATE, which would commit.
      await session.query(`delete from ${stage.relation}`, { slow: true });
      changes().truncate();
    },
    ...(stage.complete && { present: (row) => stageAsItIs({ session, target, stage }, row) }),
    complete: async (rejects) => ({ ...(await mergeRows({ session, target, stage }, rejects)), pending: null }),
    settle: nothing,
  };
}

/** What an attempt before this one left: its unfinished table goes, its finished one comes into its place. */
export async function settleLeftover(session: MysqlSession, schema: string, state: StateRow): Promise<void> {
  const { pending } = state;
  if (!pending) return;
  const { name, table, phase } = pending;
  if (phase === 'swapping') await swapIn(session, { schema, table, fresh: name });
  else await session.query(`drop table if exists ${relation(schema, name)}`, { slow: true });
  await state.note(null);
}
