import type { DuckDBConnection } from '@duckdb/node-api';
import { execute, query } from './engine.ts';
import { columnList, identifier } from './sql.ts';
import type { Stage } from './stage.ts';
import { createTable, findTable, type Target } from './tables.ts';

/** Brings the staged rows into the table, in the open transaction. @returns rows that replaced others. */
export async function loadStage(connection: DuckDBConnection, target: Target, stage: Stage): Promise<number> {
  const there = (await findTable(connection, target.schema, target.table)) !== null;
  if (there && target.mode === 'overwrite') await execute(connection, `DROP TABLE ${target.relation}`);
  if (!there || target.mode === 'overwrite') await createTable(connection, target);
  if (stage.rows === 0) return 0;
  if (target.mode === 'append_dedup') return merge(connection, target, stage);
  const columns = target.typed.map((_, at) => `c${at}`).join(', ');
  const names = columnList(target.typed.map(({ name }) => name));
  await execute(connection, `INSERT INTO ${target.relation} (${names}) SELECT ${columns} FROM (${stage.values()})`);
  return 0;
}

/**
 * Of rows with the same key the one with the highest cursor wins, then the last to arrive; a row that is there is
 * replaced unless its cursor is higher or nothing would change. DuckDB tells the rows that a merge touched: those that
 * the table has not grown by were there before.
 */
async function merge(connection: DuckDBConnection, target: Target, stage: Stage): Promise<number> {
  await stage.assertPresent(target.primary_key);
  const before = await countRows(connection, target);
  const touched = await execute(connection, mergeText(target, stage));
  return touched - ((await countRows(connection, target)) - before);
}

async function countRows(connection: DuckDBConnection, { relation }: Target): Promise<number> {
  const [row] = await query(connection, `SELECT count(*) FROM ${relation}`);
  return Number(row?.[0]);
}

function mergeText(target: Target, stage: Stage): string {
  const columns = target.typed.map(({ name, type }, at) => ({ name, type, staged: `c${at}`, own: identifier(name) }));
  const key = columns.filter(({ name }) => target.primary_key.includes(name));
  const rest = columns.filter(({ name }) => !target.primary_key.includes(name));
  const cursor = columns.find(({ name }) => name === target.cursor_column);
  // Numbers of any precision are kept as text, which has another order.
  const isText =
    target.columns.some(({ name, type }) => name === cursor?.name && type === 'number') && cursor?.type === 'VARCHAR';
  const ordered = (column: string) => (isText ? `TRY_CAST(${column} AS DOUBLE)` : column);
  const order = cursor ? `${ordered(cursor.staged)} DESC NULLS LAST, seq DESC` : 'seq DESC';
  const winners = `SELECT * FROM (${stage.values()}) QUALIFY row_number() OVER (
    PARTITION BY ${key.map(({ staged }) => staged).join(', ')} ORDER BY ${order}) = 1`;
  const notOlder = cursor
    ? `(t.${cursor.own} IS NULL OR ${ordered(`s.${cursor.staged}`)} >= ${ordered(`t.${cursor.own}`)}) AND `
    : '';
  const changed = rest.map(({ staged, own }) => `t.${own} IS DISTINCT FROM s.${staged}`).join(' OR ');
  const update = `WHEN MATCHED AND ${notOlder}(${changed})
    THEN UPDATE SET ${rest.map(({ staged, own }) => `${own} = s.${staged}`).join(', ')}`;
  return `MERGE INTO ${target.relation} AS t USING (${winners}) AS s
    ON ${key.map(({ staged, own }) => `t.${own} = s.${staged}`).join(' AND ')}
    ${rest.length > 0 ? update : ''}
    WHEN NOT MATCHED THEN INSERT (${columns.map(({ own }) => own).join(', ')})
      VALUES (${columns.map(({ staged }) => `s.${staged}`).join(', ')})`;
}
