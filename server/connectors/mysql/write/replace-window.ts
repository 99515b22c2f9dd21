import type { Field } from '../../contract/connector.ts';
import { type ReplacedWindow, windowColumn } from '../../kits/sql/replace-window.ts';
import { columnTypes } from './column-types.ts';
import { compare } from '../read/filters.ts';
import type { Load, Work } from './load.ts';
import { columnList, identifier, literal, relation, shortHash } from '../connection/sql.ts';
import { createStage } from './tables.ts';

/** Chunks side by side commit one after the other; each holds the table for as long as its own rows take. */
const TURN_SECONDS = 600;

/**
 * The rows of a window wait in a temporary table, and go into the table in the transaction that removes those they take
 * the place of: a DELETE holds all rows that it looks at until the commit, which may not be as long as a read.
 */
export function replaceWindow({ session, target }: Work, window: ReplacedWindow): Load {
  const { version } = session;
  const typeOf = (column: (typeof target.columns)[number]) => columnTypes([column], { primaryKey: [], version })[0]!;
  const { column } = windowColumn(target, window, typeOf);
  const field: Field = { path: [column.name], ...column, is_primary_key: false, is_cursor_candidate: true };
  const limit = (operator: string, value: string | null) => (value === null ? [] : [compare(field, operator, value)]);
  const limits = [...limit('>=', window.start), ...limit('<', window.end)];
  const name = `stage_${shortHash(target.stream_id)}`;
  const stage = { relation: relation(target.schema, name), sequence: `${name}_seq`, change: `${name}_change` };
  const turn = literal(`data-pipelines:window:${shortHash(target.schema, target.table)}`);
  return {
    incremental: false,
    leftover: null,
    async prepare() {
      // No key is needed to append.
      await createStage(session, { ...target, primary_key: [] }, stage);
      return stage.relation;
    },
    async complete() {
      const columns = columnList(target.columns.map(({ name: one }) => one));
      await session.query(`select get_lock(${turn}, ${TURN_SECONDS})`, { slow: true });
      const deletion = `delete from ${target.relation} where ${limits.join(' and ')}`;
      const { count } = await session.query(deletion, { slow: true });
      const rows = `select ${columns} from ${stage.relation} order by ${identifier(stage.sequence)}`;
      await session.query(`insert into ${target.relation} (${columns}) ${rows}`, { slow: true });
      return { updated: 0, deleted: count, pending: null };
    },
    // After an error the session is closed, which lets go of the lock as well.
    settle: async () => void (await session.query(`select release_lock(${turn})`)),
  };
}
