import type { Cell } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import { unusedPrefix } from '../../kits/sql/staged-changes.ts';
import {
  type DividedStage,
  isOfPart,
  mergeKeeping,
  type Merged,
  partOf,
  missingAreGone,
} from '../../kits/sql/merge-rejects.ts';
import type { Rejects } from '../../kits/sql/rejects.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { refusedKey } from '../connection/failures.ts';
import { mergeStage, removeMissing, type Stage } from './merge.ts';
import type { PgSession } from '../connection/session.ts';
import { columnList, identifier } from '../connection/sql.ts';
import type { Target } from './target.ts';

interface Work {
  session: PgSession;
  target: Target;
  stage: Stage;
}

/**
 * `mergeStage`; where rejected rows are kept, as mergeKeeping says.
 * @returns `rejected`: rows that were counted as loaded when they were staged
 */
export async function mergeRows(work: Work, rejects: Rejects | null): Promise<Merged & { rejected?: number }> {
  const { session, target, stage } = work;
  if (!rejects) {
    return mergeStage(session, target, stage).catch((error: unknown) => {
      throw named(error, target);
    });
  }
  return mergeKeeping({ session, merge: () => mergeNow(session, target, stage), divide: () => divide(work) }, rejects);
}

/**
 * For a row that could not be staged the one that the table has of its key is staged, so that it is not taken for gone.
 */
export async function stageAsItIs({ session, target, stage }: Work, row: readonly Cell[]): Promise<void> {
  const names = columnList(target.columns.map(({ name }) => name));
  const key = target.primary_key.map((name, index) => `t.${identifier(name)} = $${index + 1}`);
  const cells = target.primary_key.map((name) => row[target.columns.findIndex((one) => one.name === name)] ?? null);
  const there = `select ${names} from ${target.relation} as t where ${key.join(' and ')}`;
  await session.query('savepoint before_row');
  try {
    await session.query(`insert into ${identifier(stage.name)} (${names}) ${there}`, cells);
    await session.query('release savepoint before_row');
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    // No row of the table can have a key like that.
    await session.query('rollback to savepoint before_row');
  }
}

/** With the rules that would be looked at by the commit alone. */
async function mergeNow(session: PgSession, target: Target, stage: Stage): Promise<Merged> {
  const merged = await mergeStage(session, target, stage);
  await session.query('set constraints all immediate');
  return merged;
}

/** The rule is in the server's words; the table and the key of the row are put behind them. */
function named(error: unknown, { schema, table, primary_key, existing, columns, mode }: Target): unknown {
  if (!(error instanceof DataError)) return error;
  const inOrder = new Set(existing ? existing.types.keys() : columns.map(({ name }) => name));
  if (mode === 'soft_delete') inOrder.add(DELETED_AT);
  const key = refusedKey(error, { key: primary_key, columns: [...inOrder] });
  return new DataError(error.code, `${error.message} (table ${schema}.${table}${key && `, row with ${key}`})`);
}

/** Sets the rows of the stage aside, numbered by their keys, and removes what no staged row speaks of. */
async function divide({ session, target, stage }: Work): Promise<{ divided: DividedStage; gone: number }> {
  const names = target.columns.map(({ name }) => name);
  const prefix = unusedPrefix([...names, stage.change, stage.sequence]);
  const place = identifier(`${prefix}place`);
  const aside = `${stage.name}_all`;
  const staged = columnList([...names, stage.change, stage.sequence]);
  const sequence = identifier(stage.sequence);
  const first = `min(${sequence}) over (partition by ${columnList(target.primary_key)}) as ${prefix}first`;
  const numbered = `select ${staged}, dense_rank() over (order by ${prefix}first) - 1 as ${place}
    from (select *, ${first} from ${identifier(stage.name)}) as firsts`;
  await session.query(`create temporary table ${identifier(aside)} on commit drop as ${numbered}`, [], { slow: true });
  await session.query(`create index on ${identifier(aside)} (${place})`, [], { slow: true });
  const { rows } = await session.query(`select max(${place}) + 1 from ${identifier(aside)}`);
  const part = partOf(stage);
  const gone = missingAreGone(target, stage) ? await removeMissing(session, target, { name: aside }) : 0;
  const divided: DividedStage = {
    session,
    keys: Number(rows[0]?.[0]),
    async take(what) {
      const which = 'sequence' in what ? `${sequence} = ${what.sequence}` : isOfPart(place, what);
      await session.query(`truncate ${identifier(stage.name)}`);
      const into = `insert into ${identifier(stage.name)} (${staged}) overriding system value`;
      await session.query(
        `${into} select ${staged} from ${identifier(aside)} where ${which} order by ${sequence}`,
        [],
        {
          slow: true,
        },
      );
    },
    merge: () => mergeNow(session, target, part),
    async rowsOf(key) {
      const cells = names.map((name) => `${identifier(name)}::text`).join(', ');
      const text = `select ${sequence}, coalesce(${identifier(stage.change)}, '') = 'd', ${cells} from ${identifier(aside)}
        where ${place} = ${key} order by ${sequence}`;
      const found = await session.query(text);
      return found.rows.map(([at, isDelete, ...row]) => ({ sequence: at!, isDelete: isDelete === 't', cells: row }));
    },
  };
  return { divided, gone };
}
