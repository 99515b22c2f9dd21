import type { DuckDBConnection } from '@duckdb/node-api';
import { latestChanges } from '../../kits/sql/staged-changes.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { execute, query } from '../connection/engine.ts';
import type { Loaded } from './load.ts';
import { WAITING } from './rejects.ts';
import { identifier } from '../connection/sql.ts';
import type { Stage } from './stage.ts';
import type { Target } from './tables.ts';
import { valueSql } from '../connection/types.ts';

const LATEST = 'temp.main.latest';
const PREFIX = 'm_';
const deletedAt = `t.${identifier(DELETED_AT)}`;

/**
 * Brings the stage into the table by the primary key, as row-changes.ts says. Of rows with the same key the one with the
 * highest cursor wins, then the last to arrive; a row that is there is replaced unless its cursor is higher or nothing
 * would change. Of changes, the last to arrive wins.
 */
export async function merge(connection: DuckDBConnection, target: Target, stage: Stage): Promise<Loaded> {
  const removesMissing = target.mode !== 'update' && (stage.changes?.truncated || isComplete(target));
  const notRefused = stage.refused && isComplete(target) ? ` AND ${isNotRefused(target)}` : '';
  if (stage.rows === 0) {
    return { updated: 0, deleted: removesMissing ? await remove(connection, target, `true${notRefused}`) : 0 };
  }
  await stage.assertPresent(target.primary_key);
  const loaded = { updated: 0, deleted: 0 };
  let source = winners(target, stage);
  if (stage.changes || isComplete(target)) {
    await execute(connection, `CREATE OR REPLACE TEMP TABLE latest AS ${latest(target, stage)}`);
    source = `SELECT * FROM ${LATEST} WHERE ${PREFIX}what = ''`;
    const same = onKey(target);
    if (removesMissing) {
      const missing = `NOT EXISTS (SELECT 1 FROM ${LATEST} AS s WHERE ${same})${notRefused}`;
      loaded.deleted += await remove(connection, target, missing);
    }
    if (stage.changes?.deletes && target.mode !== 'update') {
      const which = `EXISTS (SELECT 1 FROM ${LATEST} AS s WHERE ${PREFIX}what = 'd' AND ${same})`;
      loaded.deleted += await remove(connection, target, which);
    }
    if (stage.changes?.unchanged.size) loaded.updated += await execute(connection, patchText(target, stage));
  }
  // DuckDB tells the rows that a merge touched: those that the table has not grown by were there before.
  const before = await countRows(connection, target);
  const ordered = stage.changes ? { ...target, cursor_column: null } : target;
  const touched = await execute(connection, mergeText(ordered, source));
  loaded.updated += touched - ((await countRows(connection, target)) - before);
  await execute(connection, `DROP TABLE IF EXISTS ${LATEST}`);
  return loaded;
}

/** No row that was taken out of the stage has the key of the table's row: such a one was read as well. */
function isNotRefused(target: Target): string {
  const same = columnsOf(target).key.map(({ at, type, own }) => `TRY(${valueSql(`r.c${at}`, type)}) = t.${own}`);
  return `NOT EXISTS (SELECT 1 FROM ${WAITING} AS r WHERE ${same.join(' AND ')})`;
}

/** Rows of the table that were not read are gone. */
const isComplete = (target: Target) => target.complete === true && target.mode === 'soft_delete';

const remove = (connection: DuckDBConnection, target: Target, which: string): Promise<number> =>
  execute(
    connection,
    target.mode === 'soft_delete'
      ? `UPDATE ${target.relation} AS t SET ${identifier(DELETED_AT)} = now() WHERE ${deletedAt} IS NULL AND ${which}`
      : `DELETE FROM ${target.relation} AS t WHERE ${which}`,
  );

async function countRows(connection: DuckDBConnection, { relation }: Target): Promise<number> {
  const [row] = await query(connection, `SELECT count(*) FROM ${relation}`);
  return Number(row?.[0]);
}

function columnsOf(target: Target) {
  const columns = target.typed.map(({ name, type }, at) => ({
    name,
    type,
    at,
    staged: `c${at}`,
    own: identifier(name),
  }));
  const isKey = ({ name }: { name: string }) => target.primary_key.includes(name);
  return { columns, key: columns.filter(isKey), rest: columns.filter((column) => !isKey(column)) };
}

const onKey = (target: Target) =>
  columnsOf(target)
    .key.map(({ staged, own }) => `t.${own} = s.${staged}`)
    .join(' AND ');

function latest(target: Target, stage: Stage): string {
  if (!stage.changes) return `SELECT *, '' AS ${PREFIX}what FROM (${winners(target, stage)})`;
  const { columns, key } = columnsOf(target);
  return latestChanges({
    from: `(${stage.values()}) AS staged`,
    columns: columns.map(({ staged }) => staged),
    key: key.map(({ staged }) => staged),
    change: 'change',
    sequence: 'seq',
    unchanged: stage.changes.unchanged,
    prefix: PREFIX,
  });
}

/** Numbers of any precision are kept as text, which has another order. */
function orderOf(target: Target): ((column: string) => string) | null {
  const cursor = target.typed.find(({ name }) => name === target.cursor_column);
  if (!cursor) return null;
  const isNumber = target.columns.some(({ name, type }) => name === cursor.name && type === 'number');
  return (column) => (isNumber && cursor.type === 'VARCHAR' ? `TRY_CAST(${column} AS DOUBLE)` : column);
}

/** The rows of a stage without changes, one a key. */
function winners(target: Target, stage: Stage): string {
  const { columns, key } = columnsOf(target);
  const cursor = columns.find(({ name }) => name === target.cursor_column);
  const ordered = orderOf(target);
  const order = cursor && ordered ? `${ordered(cursor.staged)} DESC NULLS LAST, seq DESC` : 'seq DESC';
  return `SELECT * FROM (${stage.values()}) QUALIFY row_number() OVER (
    PARTITION BY ${key.map(({ staged }) => staged).join(', ')} ORDER BY ${order}) = 1`;
}

/** What is set besides the columns, and what makes a row worth being written though none of them differs. */
const marks = ({ mode }: Target) =>
  mode === 'soft_delete'
    ? { set: [`${identifier(DELETED_AT)} = NULL`], differs: [`${deletedAt} IS NOT NULL`] }
    : { set: [], differs: [] };

/** Rows of which some columns stay as the table has them. */
function patchText(target: Target, { changes }: Stage): string {
  const { rest } = columnsOf(target);
  const { set, differs } = marks(target);
  const value = ({ at, staged, own }: (typeof rest)[number]) =>
    changes?.unchanged.has(at)
      ? `CASE WHEN s.${PREFIX}keep${at} = 1 THEN t.${own} ELSE s.${staged} END`
      : `s.${staged}`;
  const changed = [...rest.map((column) => `t.${column.own} IS DISTINCT FROM ${value(column)}`), ...differs];
  return `UPDATE ${target.relation} AS t SET ${[...rest.map((column) => `${column.own} = ${value(column)}`), ...set].join(', ')}
    FROM ${LATEST} AS s WHERE s.${PREFIX}what = 'u' AND ${onKey(target)} AND (${changed.join(' OR ')})`;
}

function mergeText(target: Target, source: string): string {
  const { columns, rest } = columnsOf(target);
  const cursor = columns.find(({ name }) => name === target.cursor_column);
  const ordered = orderOf(target);
  const notOlder =
    cursor && ordered
      ? `(t.${cursor.own} IS NULL OR ${ordered(`s.${cursor.staged}`)} >= ${ordered(`t.${cursor.own}`)}) AND `
      : '';
  const { set, differs } = marks(target);
  const changed = [...rest.map(({ staged, own }) => `t.${own} IS DISTINCT FROM s.${staged}`), ...differs].join(' OR ');
  const assignments = [...rest.map(({ staged, own }) => `${own} = s.${staged}`), ...set].join(', ');
  const update = assignments === '' ? '' : `WHEN MATCHED AND ${notOlder}(${changed}) THEN UPDATE SET ${assignments}`;
  const insert = `WHEN NOT MATCHED THEN INSERT (${columns.map(({ own }) => own).join(', ')})
      VALUES (${columns.map(({ staged }) => `s.${staged}`).join(', ')})`;
  // A table of nothing but keys has nothing to be updated.
  const otherwise = target.mode === 'update' ? (update === '' ? 'WHEN NOT MATCHED THEN DO NOTHING' : '') : insert;
  return `MERGE INTO ${target.relation} AS t USING (${source}) AS s ON ${onKey(target)} ${update} ${otherwise}`;
}
