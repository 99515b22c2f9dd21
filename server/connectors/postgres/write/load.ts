import type { ChangedValues } from '../../cells/value-gate.ts';
import type { Cell } from '../../contract/connector.ts';
import { ConnectorError } from '../../contract/errors.ts';
import type { ExtraState } from '../../kits/sql/state-row.ts';
import type { Rejects } from '../../kits/sql/rejects.ts';
import { type PendingTable, pendingState } from '../../kits/sql/publish/pending-table.ts';
import { READY, readyTable } from '../../kits/sql/publish/ready.ts';
import { type Stage, stageOf } from '../../kits/sql/stage.ts';
import { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import { createTable, creation } from '../../kits/sql/tables.ts';
import { isMerge } from '../../kits/sql/target.ts';
import type { PgSession } from '../connection/session.ts';
import { columnList, identifier, relation } from '../connection/sql.ts';
import { BesideTable } from './beside-table.ts';
import { postgres } from './dialect.ts';
import { mergeAhead } from './merge/merge-ahead.ts';
import { mergeRows, stageAsItIs } from './merge/merge-rejects.ts';
import type { OneMerged } from './merge/one-merge.ts';
import { deleteWindow } from './replace-window.ts';
import { pendingOf } from './pending-table.ts';
import { addKey, bringIn, swapIn } from './swap.ts';
import { takesDirectly } from './held-rows.ts';
import { createStage } from './tables.ts';
import type { PgTarget } from './target.ts';

/** What a mode does with the copied rows. Both steps run in the transaction that commits the state. */
export interface Load {
  /** Rows may become visible before the end of the stream. */
  readonly incremental: boolean;
  /** @returns the table to copy into, quoted, and whether the COPY may freeze its rows */
  prepare(session: PgSession): Promise<{ into: string; freeze: boolean }>;
  /** Set if nothing shows the rows of this table before `complete`, so that several sessions may copy them. */
  readonly pending?: PendingTable;
  /** Set if other sessions may copy into a table of their own, whose rows `complete` moves. */
  readonly beside?: BesideTable;
  /** Set for a merge. */
  readonly stage?: Stage;
  /** The table is created by `prepare` and holds no rows but those that are copied. */
  readonly isFirst?: boolean;
  /** A few rows can be merged without the stage. */
  isDirect?(): boolean;
  /**
   * Brings the copied rows into place. `rejects`: takes those that cannot be.
   * @returns rows that replaced others, rows that are gone, copied ones that were rejected, and values that changed
   */
  complete(session: PgSession, rejects: Rejects | null): Promise<Completed>;
  /** `complete` while a commit before it is under way in another session (merge/merge-ahead.ts). Absent: it has to wait. */
  mergeAhead?(session: PgSession): Promise<OneMerged | null>;
  /** A row that could not be copied exists at the source; absent: what was not copied stays as it is. */
  present?(session: PgSession, row: readonly Cell[]): Promise<void>;
}

export interface Completed {
  updated: number;
  deleted: number;
  rejected?: number;
  changed?: ChangedValues;
  extra?: ExtraState;
  /** Bytes of tables that the commit deletes. */
  dropped?: number;
}

export function loadOf(target: PgTarget): Load {
  if (isMerge(target)) return isFirstLoad(target) ? firstLoad(target) : merge(target);
  return target.mode === 'overwrite' ? overwrite(target) : append(target);
}

const append = (target: PgTarget): Load =>
  target.existing === null && !target.rejects ? firstAppend(target) : appendTo(target);

/** Until the first commit a missing table is filled under another name, as for `overwrite`: several sessions can do that. */
function firstAppend(target: PgTarget): Load {
  const first = aside(target, []);
  const later = appendTo(target, true);
  let isFirst = true;
  return {
    incremental: later.incremental,
    get pending() {
      return isFirst ? first.pending : undefined;
    },
    get beside() {
      return isFirst ? undefined : later.beside;
    },
    prepare: (session) => (isFirst ? first : later).prepare(session),
    async complete(session, rejects) {
      if (!isFirst) return later.complete(session, rejects);
      isFirst = false;
      const changed = await bringIn(session, target, first.pending.name);
      return { updated: 0, deleted: 0, changed, extra: pendingState(null) };
    },
  };
}

function appendTo(target: PgTarget, created = false): Load {
  let present = created || target.existing !== null;
  let deleted = 0;
  const beside = new BesideTable(target);
  return {
    get beside() {
      return present ? beside : undefined;
    },
    // The rows of a window are replaced by one commit: a commit of a part would leave the rest missing.
    incremental: !target.replace_window,
    async prepare(session) {
      const freeze = !present;
      if (!present) await createTable({ session, dialect: postgres }, target, { name: target.table, key: [] });
      present = true;
      if (target.replace_window) deleted = await deleteWindow(session, target, target.replace_window);
      return { into: target.relation, freeze };
    },
    complete: async (session) => ({ updated: 0, deleted, ...(await beside.moveRows(session)) }),
  };
}

/**
 * The new table is created, filled and swapped in by one transaction. Until the commit readers see the old one, and a
 * crash at any point leaves nothing behind. If several sessions fill it, it is committed empty or in part before, and noted
 * as pending: whatever follows a failed attempt drops it. With `publish_with` the new table is committed, and swapped in by
 * `publish`.
 */
function overwrite(target: PgTarget): Load {
  const { pending, prepare } = aside(target, target.primary_key);
  const fresh = pending.name;
  return {
    incremental: false,
    pending,
    prepare,
    async complete(session) {
      await addKey(session, target, fresh);
      const swapped = target.publish_with == null ? await swapIn(session, target, fresh) : {};
      const ready = target.publish_with == null ? null : JSON.stringify(readyTable(target, fresh));
      return { updated: 0, deleted: 0, ...swapped, extra: { [READY]: ready, ...pendingState(null) } };
    },
  };
}

/**
 * A new table with a name of its own. `addKey` gives it its key. It would read all rows once more to find a NULL in columns
 * that take one: 0.26 instead of 0.17 s of the server for a million rows, where the COPY looks for 0.02 s.
 */
function aside(target: PgTarget, filled: readonly string[]) {
  const pending = pendingOf(target);
  const { name } = pending;
  const prepare: Load['prepare'] = async (session) => {
    session.ahead(creation(postgres, target, { name, key: [], filled }));
    return { into: relation(target.schema, name), freeze: true };
  };
  return { pending, prepare };
}

/** The stage is a temporary table: not logged, and gone with the session. */
function merge(target: PgTarget): Load {
  let present = target.existing !== null;
  const stage = stageOf(postgres, target, identifier);
  return {
    // After a part of a complete read the rest would be marked as deleted.
    incremental: !stage.complete,
    stage,
    isDirect: () => present && !stage.complete && takesDirectly(target),
    async prepare(session) {
      if (!present) {
        const { table, primary_key } = target;
        await createTable({ session, dialect: postgres }, target, { name: table, key: primary_key });
      }
      present = true;
      stage.changes = null;
      await createStage(session, target, stage);
      return { into: stage.relation, freeze: false };
    },
    complete: (session, rejects) => mergeRows({ session, target, stage }, rejects),
    mergeAhead: (session) => mergeAhead(session, { target, stage }),
    ...(stage.complete && {
      present: (session: PgSession, row: readonly Cell[]) => stageAsItIs({ session, target, stage }, row),
    }),
  };
}

/** Rejected rows are found while rows are merged. */
const isFirstLoad = ({ whole_table, existing, mode, rejects }: PgTarget) =>
  whole_table === true && existing === null && mode === 'append_dedup' && rejects == null;

/**
 * A whole table goes straight into its new one: a stage would have all rows written twice, and looked up one by one. If
 * a key occurs more than once, they are merged after all.
 */
function firstLoad(target: PgTarget): Load {
  const stage = stageOf(postgres, target, identifier);
  return {
    incremental: true,
    isFirst: true,
    stage,
    async prepare(session) {
      const { table: name, primary_key: filled } = target;
      await createTable({ session, dialect: postgres }, target, { name, key: [], filled });
      return { into: target.relation, freeze: true };
    },
    async complete(session, rejects) {
      await session.query('savepoint before_key');
      try {
        await addKey(session, target, target.table);
      } catch (error) {
        if (!(error instanceof ConnectorError && error.code === 'duplicate_key')) throw error;
        await session.query('rollback to savepoint before_key');
        const columns = columnList(target.columns.map(({ name }) => name));
        await createStage(session, target, stage);
        await session.query(`insert into ${stage.relation} (${columns}) select ${columns} from ${target.relation}`);
        await session.query(`truncate ${target.relation}`);
        await addKey(session, target, target.table);
        return mergeRows({ session, target, stage }, rejects);
      }
      return { updated: 0, deleted: 0 };
    },
  };
}

/** The changes of a stage; from the first one on it takes changes. */
export const changesOf = (stage: Stage): StagedChanges => (stage.changes ??= new StagedChanges());
