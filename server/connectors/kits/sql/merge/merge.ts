import type { Dialect, SqlSession } from '../dialect.ts';
import type { Target } from '../target.ts';
import {
  columnNames,
  cursorOf,
  isReplaced,
  keptOr,
  latestRows,
  marksOf,
  newestRows,
  onKey,
  removalsOf,
  replacement,
  type StagedMerge,
  stagedValue,
} from './staged-merge.ts';

/** Rows that really changed, and rows that are gone or marked as deleted. */
export interface Merged {
  updated: number;
  deleted: number;
}

/** The statements that bring a stage into its table. Without `latest`, `upsert` and `update` read the stage itself. */
export interface MergePlan {
  /** A SELECT of the last change of each key, to be had under the dialect's name for it. */
  latest: string | null;
  /** Columns of the primary key in `latest`, quoted. */
  key: readonly string[];
  removals: string[];
  /** Updates rows of which some columns stay as the table has them. */
  patch: string | null;
  put: { upsert: string } | { update: string };
}

/**
 * How to bring a stage into the table by the primary key (contract/changes.ts). Of rows with the same key the one with
 * the highest cursor wins, then the last to arrive. An existing row is replaced unless its cursor is higher or nothing
 * would change. Of changes the last to arrive wins.
 */
export function mergePlan(
  dialect: Dialect,
  target: Target,
  staged: StagedMerge,
  order = (column: string) => column,
): MergePlan {
  const { merge } = dialect;
  const { changes, columns, prefix, complete } = staged;
  const isUpdate = target.mode === 'update';
  const cursor = cursorOf(target, staged, order);
  const newest = newestRows(dialect, staged, cursor);
  const needsLatest = changes !== null || (merge.indexesLatest && (complete || isUpdate));
  const latest = needsLatest ? latestRows(dialect, staged, newest) : null;
  const removals = removalsOf(dialect, target, staged);
  const first = removals.length > 0 ? merge.afterRemovals?.(removals.length) : undefined;
  const after = needsLatest && first ? ` and ${first}` : '';
  const on = onKey(columns);
  const replaced = replacement(dialect, target, { columns, on });
  // Changes are in the order of arrival, so the cursor has no say.
  const compared = changes ? null : cursor;
  const whole = needsLatest ? `select * from ${staged.latest} where ${prefix}what = ''${after}` : newest;
  const patch = changes?.unchanged.size
    ? replaced({
        from: staged.latest,
        where: `s.${prefix}what = 'u'${after}`,
        cursor: compared,
        value: keptOr(changes, prefix),
      })
    : null;
  const update = () => {
    const where = needsLatest ? `s.${prefix}what = ''${after}` : 'true';
    return replaced({ from: needsLatest ? staged.latest : `(${newest})`, where, cursor: compared, value: stagedValue });
  };
  const upsert = () =>
    merge.upsert({
      relation: target.relation,
      columns,
      from: whole,
      cursor: compared,
      ...marksOf(dialect, target),
      isReplaced: (incoming) => isReplaced(dialect, target, { columns, cursor: compared, incoming }),
    });
  const key = columnNames(staged).key;
  return { latest, key, removals, patch, put: isUpdate ? { update: update() } : { upsert: upsert() } };
}

/**
 * Runs a plan statement by statement.
 * @param how.keep creates and fills the table of the last change of each key
 * @param how.upsert runs the upsert and returns the rows that it replaced
 */
export async function runMerge(
  session: SqlSession,
  plan: MergePlan,
  how: { keep(latest: string): Promise<void>; upsert(text: string): Promise<number>; drop(): Promise<void> },
): Promise<Merged> {
  const run = async (text: string) => (await session.query(text, { slow: true })).count;
  const merged = { updated: 0, deleted: 0 };
  if (plan.latest !== null) await how.keep(plan.latest);
  for (const text of plan.removals) merged.deleted += await run(text);
  if (plan.patch !== null) merged.updated += await run(plan.patch);
  merged.updated += 'upsert' in plan.put ? await how.upsert(plan.put.upsert) : await run(plan.put.update);
  if (plan.latest !== null) await how.drop();
  return merged;
}
