import type { Cell } from '../../contract/connector.ts';
import { columnList } from '../../kits/sql/dialect.ts';
import { shortHash } from '../../kits/sql/names.ts';
import type { PendingTable } from '../../kits/sql/publish/pending-table.ts';
import { readyTable } from '../../kits/sql/publish/ready.ts';
import { stageOf } from '../../kits/sql/stage.ts';
import { changedByCopy } from '../../kits/sql/gate.ts';
import { adaptTable, createTable } from '../../kits/sql/tables.ts';
import { isMerge, keyOf } from '../../kits/sql/target.ts';
import { derivedName, relation } from '../connection/sql.ts';
import { castType } from './cast-type.ts';
import { mergeRows, stageAsItIs } from './merge-rejects.ts';
import { notePending } from './pending-table.ts';
import { replaceWindow } from './replace-window.ts';
import { hasAttachments, swapIn } from './swap.ts';
import { createStage, findTable } from './tables.ts';
import type { Load, Work } from './work.ts';

export function loadOf(work: Work): Load {
  const { mode, replace_window } = work.target;
  if (isMerge(work.target)) return merge(work);
  if (mode === 'overwrite') return overwrite(work);
  return replace_window ? replaceWindow(work, replace_window) : append(work);
}

/** Creates the table before the first rows, once. */
function tableCreator(work: Work): () => Promise<void> {
  const { target } = work;
  let present = target.existing !== null;
  return async () => {
    if (!present) await createTable(work, target, { name: target.table, key: keyOf(target) });
    present = true;
  };
}

/** A crash before the first commit leaves the new table empty. */
function append(work: Work): Load {
  const ensureTable = tableCreator(work);
  return {
    incremental: true,
    async prepare() {
      await ensureTable();
      return work.target.relation;
    },
    complete: async () => ({ updated: 0 }),
  };
}

/**
 * The rows go into a new table, whose name is in the state table before it is created. The last transaction notes,
 * with the state, that the new table replaces the old one; the swap follows. After a crash in between, the next attempt
 * to open the stream finds that note and swaps first: from the commit on the run counts as done, and is. With
 * `publish_with` the new table stays aside until `publish`.
 */
function overwrite(work: Work): Load {
  const { session, dialect, target, state } = work;
  const { connection_id, stream_id, stream_run_id, fence, schema, table } = target;
  const fresh = derivedName(table, `__new_${shortHash(connection_id, stream_id, stream_run_id, fence)}`);
  const swap = { schema, table, fresh };
  const freshRelation = relation(schema, fresh);
  const pending = (phase: PendingTable['phase']): PendingTable => ({ name: fresh, table, phase });
  const isPublished = target.publish_with != null;
  let copied = false;
  return {
    incremental: false,
    leftover: freshRelation,
    async prepare() {
      await notePending(session, state, pending('loading'));
      await createTable(work, target, { name: fresh, key: target.primary_key });
      return freshRelation;
    },
    async complete() {
      if (isPublished) return { updated: 0, ready: readyTable(target, fresh) };
      const old = await findTable(session, schema, table);
      copied = old !== null && (await hasAttachments(session, swap));
      if (!old || !copied) return { updated: 0, pending: pending('swapping') };
      // Commits the rows of the new table, which has no readers yet.
      await adaptTable(work, target, old);
      const changed = await changedByCopy(work, target, { from: freshRelation, old, as: castType });
      await session.query('start transaction');
      const columns = columnList(
        dialect,
        target.columns.map(({ name }) => name),
      );
      await session.query(`delete from ${target.relation}`, { slow: true });
      const rows = `select ${columns} from ${freshRelation}`;
      await session.query(`insert into ${target.relation} (${columns}) ${rows}`, { slow: true });
      return { updated: 0, changed, pending: pending('loading') };
    },
    async finish() {
      if (isPublished) return;
      if (copied) await session.query(`drop table if exists ${freshRelation}`, { slow: true });
      else await swapIn(session, swap);
      await notePending(session, state, null);
    },
  };
}

/** The stage is a temporary table, gone with the session. */
function merge(work: Work): Load {
  const { session, dialect, target } = work;
  const ensureTable = tableCreator(work);
  const stage = stageOf(dialect, target, (name) => relation(target.schema, name));
  return {
    // After a part of a complete read the rest would be marked as deleted.
    incremental: !stage.complete,
    stage,
    async prepare() {
      await ensureTable();
      stage.changes = null;
      await createStage({ session, dialect }, target, stage);
      return stage.relation;
    },
    complete: (rejects) => mergeRows({ ...work, stage }, rejects),
    ...(stage.complete && { present: (row: readonly Cell[]) => stageAsItIs({ ...work, stage }, row) }),
  };
}
