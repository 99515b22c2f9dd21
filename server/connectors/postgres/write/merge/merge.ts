import type { Merged, MergePlan } from '../../../kits/sql/merge/merge.ts';
import type { PgSession } from '../../connection/session.ts';
import { SORT_MEMORY } from '../../connection/sort-memory.ts';
import type { PgTarget } from '../target.ts';
import type { Row } from '../../connection/result.ts';
import { deleteUsing, type MergeDialect, updateFrom } from '../../../kits/sql/merge/merge-dialect.ts';
import type { ExchangePlan } from '../../../kits/sql/merge/exchange-plan.ts';
import { OVERRIDING } from './overriding.ts';

export const mergeSql: MergeDialect = {
  indexesLatest: false,
  // Compares the stored bytes: unlike "=" it works for json, and tells 1.0 from 1.00.
  differs: (pairs) => {
    const row = (side: 0 | 1) => `row(${pairs.map((pair) => pair[side]).join(', ')})`;
    return `pg_catalog.record_image_ne(${row(0)}, ${row(1)})`;
  },
  update: updateFrom,
  remove: deleteUsing,
  upsert: ({ relation, columns, from, marks, isReplaced }) => {
    const names = columns.map(({ own }) => own).join(', ');
    const key = columns.filter(({ isKey }) => isKey).map(({ own }) => own);
    const rest = columns.filter(({ isKey }) => !isKey).map(({ own }) => `${own} = excluded.${own}`);
    const set = [...rest, ...marks].join(', ');
    const replace = set ? `update set ${set} where ${isReplaced(({ own }) => `excluded.${own}`)}` : 'nothing';
    return `insert into ${relation} as t (${names}) ${OVERRIDING} select ${names} from (${from}) as s
      on conflict (${key.join(', ')}) do ${replace}`;
  },
  afterRemovals: (count) => Array.from({ length: count }, (_, at) => finished(removed(at))).join(' and '),
  // Cheaper than row_number().
  firstOfKey: ({ from, columns, key, order }) =>
    `select distinct on (${key}) ${columns} from ${from} order by ${key}, ${order}`,
};

const removed = (at: number) => `removed${at}`;

/** True. The server runs the step to its end before it takes a row of the step with this condition. */
const finished = (step: string) => `(select count(*) from ${step}) >= 0`;

/** The savepoint to which `runPlan` can be undone. */
export const BEFORE_PLAN = 'before_plan';

/** Runs a plan as one statement, after a savepoint. `name`: of the last change of each key. */
export async function runPlan(
  session: PgSession,
  about: { target: PgTarget; name: string },
  plan: MergePlan,
): Promise<Merged> {
  await session.query(`savepoint ${BEFORE_PLAN}; ${SORT_MEMORY}`);
  const { rows } = await session.query(planStatement(about, plan), { slow: true });
  return mergedOf(rows);
}

/** A plan as one statement, whose only row is read by `mergedOf`. */
export function planStatement({ target, name }: { target: PgTarget; name: string }, plan: MergePlan): string {
  const { latest, removals, patch, put } = plan;
  const upsert = 'upsert' in put ? `${put.upsert} returning ${isNew(target)}` : `${put.update} returning false`;
  const steps = [
    ...(latest === null ? [] : [`${name} as materialized (${latest})`]),
    ...removals.map((text, at) => `${removed(at)} as (${text} returning 1)`),
    `merged as (${upsert} as is_new)`,
    ...(patch === null ? [] : [`patched as (${patch} returning 1)`]),
  ];
  const count = (step: string, filter = '') => `(select count(*)${filter} from ${step})`;
  const updated = [count('merged', ' filter (where not is_new)'), ...(patch === null ? [] : [count('patched')])];
  const deleted = removals.map((_, at) => count(removed(at)));
  return `with ${steps.join(',\n')} select ${updated.join(' + ')}, ${deleted.join(' + ') || '0'}`;
}

/** An exchange as one statement, whose only row is read by `mergedOf`. `old`: the step of the rows that change. */
export function exchangeStatement(plan: ExchangePlan, { name, old }: { name: string; old: string }): string {
  const { latest, removals, free, putBack, putNew } = plan;
  const removedFirst = removals.map((_, at) => finished(removed(at)));
  const steps = [
    `${name} as materialized (${latest})`,
    ...removals.map((text, at) => `${removed(at)} as (${text} returning 1)`),
    `${old} as (${free} returning t.*)`,
    `put_back as (${putBack} where ${[...removedFirst, finished(old)].join(' and ')} returning 1)`,
    ...(putNew === null ? [] : [`put_new as (${putNew} and ${finished('put_back')} returning 1)`]),
  ];
  const deleted = removals.map((_, at) => `(select count(*) from ${removed(at)})`);
  return `with ${steps.join(',\n')} select (select count(*) from put_back), ${deleted.join(' + ') || '0'}`;
}

export function mergedOf([row = []]: readonly Row[]): Merged {
  const [updated = 0, deleted = 0] = row.map(Number);
  return { updated, deleted };
}

/** A row that the statement itself inserted has no xmax. Partitioned tables do not return theirs. */
const isNew = ({ existing }: PgTarget) => (existing?.kind === 'p' ? 'true' : 't.xmax = 0');
