import type { SqlSession } from '../../kits/sql/dialect.ts';
import { type Merged, mergePlan, runMerge } from '../../kits/sql/merge/merge.ts';
import type { Target } from '../../kits/sql/target.ts';
import { identifier, literal } from '../connection/sql.ts';
import { valueSql } from '../connection/types.ts';
import { duckdb } from './dialect.ts';
import { WAITING } from './rejects.ts';
import type { Stage } from './stage.ts';
import { removal, removesMissing, type StagedMerge } from '../../kits/sql/merge/staged-merge.ts';
import { exchangePlan } from '../../kits/sql/merge/exchange-plan.ts';

const LATEST = 'temp.main.latest';
/** The rows that an exchange puts back. */
const OLD = 'temp.main.old';

/** Merges the stage into the table, in the open transaction. `exchange`: rows pass unique values on. */
export async function merge(session: SqlSession, target: Target, stage: Stage, exchange = false): Promise<Merged> {
  const staged = stagedMerge(target, stage);
  const run = async (text: string) => (await session.query(text)).count;
  if (stage.rows === 0) {
    const where = staged.spared ?? 'true';
    return { updated: 0, deleted: removesMissing(target, staged) ? await run(removal(duckdb, target, { where })) : 0 };
  }
  await stage.assertPresent(target.primary_key);
  if (exchange) return exchangeRows(session, target, staged);
  return runMerge(session, mergePlan(duckdb, target, staged, cursorOrder(target)), {
    keep: async (latest) => void (await run(`CREATE OR REPLACE TEMP TABLE latest AS ${latest}`)),
    async upsert(text) {
      // DuckDB counts the rows that a merge touched: those by which the table did not grow were replaced.
      const before = await countRows(session, target);
      const touched = await run(text);
      return touched - ((await countRows(session, target)) - before);
    },
    drop: async () => void (await run(`DROP TABLE ${LATEST}`)),
  });
}

async function exchangeRows(session: SqlSession, target: Target, staged: StagedMerge): Promise<Merged> {
  const run = async (text: string) => (await session.query(text)).count;
  const { rows } = await session.query(`SELECT name FROM pragma_table_info(${literal(target.relation)})`);
  const names = rows.map(([name]) => name!);
  const plan = exchangePlan(duckdb, target, staged, { names, old: OLD, overriding: '', order: cursorOrder(target) });
  await run(`CREATE OR REPLACE TEMP TABLE latest AS ${plan.latest}`);
  let deleted = 0;
  for (const text of plan.removals) deleted += await run(text);
  await run(`CREATE OR REPLACE TEMP TABLE old AS ${plan.old}`);
  await run(plan.free);
  const updated = await run(plan.putBack);
  if (plan.putNew !== null) await run(plan.putNew);
  for (const table of [LATEST, OLD]) await run(`DROP TABLE ${table}`);
  return { updated, deleted };
}

function stagedMerge(target: Target, stage: Stage): StagedMerge {
  const columns = target.columns.map(({ name }, at) => ({
    staged: `c${at}`,
    own: identifier(name),
    at,
    isKey: target.primary_key.includes(name),
  }));
  const complete = target.complete === true && target.mode === 'soft_delete';
  return {
    from: `(${stage.values()}) as staged`,
    latest: LATEST,
    columns,
    sequence: 'seq',
    change: 'change',
    prefix: 'm_',
    changes: stage.changes,
    complete,
    ...(stage.refused && complete && { spared: isNotRefused(target, stage) }),
  };
}

/** No row that was taken out of the stage has the key of the table's row: such a row exists at the source. */
function isNotRefused(target: Target, { key }: Stage): string {
  const same = key.map((at) => {
    const { name, type } = target.typed[at]!;
    return `TRY(${valueSql(`r.c${at}`, type)}) = t.${identifier(name)}`;
  });
  return `NOT EXISTS (SELECT 1 FROM ${WAITING} AS r WHERE ${same.join(' AND ')})`;
}

async function countRows(session: SqlSession, { relation }: Target): Promise<number> {
  const { rows } = await session.query(`SELECT count(*) FROM ${relation}`);
  return Number(rows[0]?.[0]);
}

/** Numbers of any precision are stored as text, which sorts differently. */
function cursorOrder({ columns, typed, cursor_column }: Target): (column: string) => string {
  const at = columns.findIndex(({ name }) => name === cursor_column);
  const isText = columns[at]?.type === 'number' && typed[at]?.type === 'VARCHAR';
  return (column) => (isText ? `TRY_CAST(${column} AS DOUBLE)` : column);
}
