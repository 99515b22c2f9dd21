import type { Field } from '../../contract/connector.ts';
import { columnList } from '../../kits/sql/dialect.ts';
import { shortHash } from '../../kits/sql/names.ts';
import { type ReplacedWindow, windowColumn } from '../../kits/sql/replace-window.ts';
import { stageOf } from '../../kits/sql/stage.ts';
import { literal, relation } from '../connection/sql.ts';
import { compare } from '../read/filters.ts';
import { createStage } from './tables.ts';
import type { Load, Work } from './work.ts';

/** Chunks that are written in parallel commit one after the other; each holds the table while its own rows go in. */
const TURN_SECONDS = 600;

/**
 * The rows of a window wait in a temporary table and go into the table in the transaction that removes the rows they
 * replace. A DELETE locks all rows that it reads until the commit, so it must not stay open for as long as a read.
 */
export function replaceWindow({ session, dialect, target }: Work, window: ReplacedWindow): Load {
  const { column } = windowColumn(target, window, (one) => dialect.columnTypes([one], [])[0]!);
  const field: Field = { path: [column.name], ...column, is_primary_key: false, is_cursor_candidate: true };
  const limit = (operator: '>=' | '<', value: string | null) =>
    value === null ? [] : [compare(field, operator, value)];
  const limits = [...limit('>=', window.start), ...limit('<', window.end)];
  const stage = stageOf(dialect, target, (name) => relation(target.schema, name));
  const turn = literal(`data-pipelines:window:${shortHash(target.schema, target.table)}`);
  return {
    incremental: false,
    async prepare() {
      // Rows are appended, so they need no key.
      await createStage({ session, dialect }, { ...target, primary_key: [] }, stage);
      return stage.relation;
    },
    async complete() {
      const columns = columnList(
        dialect,
        target.columns.map(({ name }) => name),
      );
      await session.query(`select get_lock(${turn}, ${TURN_SECONDS})`, { slow: true });
      const deletion = `delete from ${target.relation} where ${limits.join(' and ')}`;
      const { count } = await session.query(deletion, { slow: true });
      const rows = `select ${columns} from ${stage.relation} order by ${stage.sequence}`;
      await session.query(`insert into ${target.relation} (${columns}) ${rows}`, { slow: true });
      return { updated: 0, deleted: count };
    },
    // After an error the session is closed, which releases the lock as well.
    finish: async () => void (await session.query(`select release_lock(${turn})`)),
  };
}
