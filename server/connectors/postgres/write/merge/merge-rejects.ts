import type { Cell } from '../../../contract/connector.ts';
import { DELETED_AT } from '../../../contract/changes.ts';
import { ConnectorError, DataError } from '../../../contract/errors.ts';
import { type Merged, mergePlan } from '../../../kits/sql/merge/merge.ts';
import { divideStage, mergeKeeping, stageExisting } from '../../../kits/sql/merge/merge-rejects.ts';
import type { Rejects } from '../../../kits/sql/rejects.ts';
import { type Stage, stagedMerge } from '../../../kits/sql/stage.ts';
import { refusedKey } from '../../connection/failures.ts';
import type { PgSession } from '../../connection/session.ts';
import { identifier } from '../../connection/sql.ts';
import { postgres } from '../dialect.ts';
import { exchangeRows } from './exchange.ts';
import { BEFORE_PLAN, runPlan } from './merge.ts';
import { runOneMerge } from './one-merge.ts';
import type { PgTarget } from '../target.ts';
import { missingRemoval } from '../../../kits/sql/merge/staged-merge.ts';
import { oneMerge } from '../../../kits/sql/merge/one-merge.ts';
import { OVERRIDING } from './overriding.ts';

interface Work {
  session: PgSession;
  target: PgTarget;
  stage: Stage;
}

/**
 * Merges the stage, in the quickest way that the rows allow. One MERGE fails where another session inserts the same key,
 * or where a row takes the unique value of one that is removed. What follows it fails where a row may have taken a unique
 * value before another one released it, which makes it an exchange. Of a deadlock one MERGE may be the victim, even of a
 * merge that is undone once it is known to be in the way (merge-ahead.ts).
 */
async function mergeStage(work: Work): Promise<Merged> {
  const { session, target, stage } = work;
  const staged = stagedMerge(postgres, target, stage);
  const one = oneMerge(postgres, target, staged);
  const merged =
    one && (await unless(['duplicate_key', 'deadlock'], session, () => runOneMerge(session, target, one))).merged;
  if (merged) return merged;
  const plan = mergePlan(postgres, target, staged);
  const planned = await unless(['duplicate_key'], session, () =>
    runPlan(session, { target, name: stage.latest }, plan),
  );
  if (planned.merged) return planned.merged;
  const exchanged = await exchangeRows(work);
  if (exchanged === null) throw planned.error;
  return exchanged;
}

/** What `merge` returns, or an error with one of these codes, after which nothing of it is left. */
async function unless(
  codes: readonly string[],
  session: PgSession,
  merge: () => Promise<Merged | null>,
): Promise<{ merged: Merged | null; error?: unknown }> {
  try {
    return { merged: await merge() };
  } catch (error) {
    if (!(error instanceof ConnectorError) || !codes.includes(error.code)) throw error;
    await session.query(`rollback to savepoint ${BEFORE_PLAN}`);
    return { merged: null, error };
  }
}

/**
 * Merges the stage, and keeps rows that break a rule of the table where rejected rows are kept.
 * @returns `rejected`: rows that were counted as loaded when they were staged
 */
export async function mergeRows(work: Work, rejects: Rejects | null): Promise<Merged & { rejected?: number }> {
  const { session, target, stage } = work;
  if (!rejects) {
    return mergeStage(work).catch((error: unknown) => {
      throw named(error, target);
    });
  }
  /** Checks deferred rules as well, which the commit alone would check otherwise. */
  const merge = async (part: Stage) => {
    const merged = await mergeStage({ ...work, stage: part });
    await session.query('set constraints all immediate');
    return merged;
  };
  const run = async (text: string) => (await session.query(text, { slow: true })).count;
  const divide = () =>
    divideStage({
      session,
      dialect: postgres,
      target,
      stage,
      merge,
      removeMissing: (from) => run(missingRemoval(postgres, target, stagedMerge(postgres, target, stage), from)),
      async setAside(select, place) {
        await run(`create temporary table ${stage.aside} on commit drop as ${select}`);
        await run(`create index on ${stage.aside} (${place})`);
      },
      empty: `truncate ${stage.relation}`,
      overriding: OVERRIDING,
      cellText: ({ name }) => `${identifier(name)}::text`,
    });
  return mergeKeeping({ session, merge: () => merge(stage), divide }, rejects);
}

/** For a row that could not be staged: its row in the table does not count as gone. */
export const stageAsItIs = (work: Work, row: readonly Cell[]): Promise<void> =>
  stageExisting({ ...work, dialect: postgres }, row, ({ name }, cell) => `t.${identifier(name)} = ${cell}`);

/** The server names the rule that was broken; this appends the table and the key of the row. */
function named(error: unknown, { schema, table, primary_key, existing, columns, mode }: PgTarget): unknown {
  if (!(error instanceof DataError)) return error;
  const inOrder = new Set(existing ? existing.types.keys() : columns.map(({ name }) => name));
  if (mode === 'soft_delete') inOrder.add(DELETED_AT);
  const key = refusedKey(error, { key: primary_key, columns: [...inOrder] });
  return new DataError(error.code, `${error.message} (table ${schema}.${table}${key && `, row with ${key}`})`);
}
