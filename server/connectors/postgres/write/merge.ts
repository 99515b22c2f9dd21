import { deleteUsing, type Merged, type MergeDialect, type MergePlan, updateFrom } from '../../kits/sql/merge.ts';
import type { PgSession, Row } from '../connection/session.ts';
import { SORT_MEMORY } from '../connection/sort-memory.ts';
import type { PgTarget } from './target.ts';

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
    return `insert into ${relation} as t (${names}) select ${names} from (${from}) as s
      on conflict (${key.join(', ')}) do ${replace}`;
  },
  // Cheaper than row_number().
  firstOfKey: ({ from, columns, key, order }) =>
    `select distinct on (${key}) ${columns} from ${from} order by ${key}, ${order}`,
};

/** Runs a plan as one statement. `name`: of the last change of each key. */
export async function runPlan(
  session: PgSession,
  about: { target: PgTarget; name: string },
  plan: MergePlan,
): Promise<Merged> {
  await session.query(SORT_MEMORY);
  const { rows } = await session.query(planStatement(about, plan), { slow: true });
  return mergedOf(rows);
}

/** A plan as one statement, whose only row is read by `mergedOf`. */
export function planStatement({ target, name }: { target: PgTarget; name: string }, plan: MergePlan): string {
  const { latest, removals, patch, put } = plan;
  const upsert = 'upsert' in put ? `${put.upsert} returning ${isNew(target)}` : `${put.update} returning false`;
  const removed = removals.map((text, at) => ({ step: `removed${at}`, text }));
  const steps = [
    ...(latest === null ? [] : [`${name} as materialized (${latest})`]),
    `merged as (${upsert} as is_new)`,
    ...removed.map(({ step, text }) => `${step} as (${text} returning 1)`),
    ...(patch === null ? [] : [`patched as (${patch} returning 1)`]),
  ];
  const count = (step: string, filter = '') => `(select count(*)${filter} from ${step})`;
  const updated = [count('merged', ' filter (where not is_new)'), ...(patch === null ? [] : [count('patched')])];
  const deleted = removed.map(({ step }) => count(step));
  return `with ${steps.join(',\n')} select ${updated.join(' + ')}, ${deleted.join(' + ') || '0'}`;
}

export function mergedOf([row = []]: readonly Row[]): Merged {
  const [updated = 0, deleted = 0] = row.map(Number);
  return { updated, deleted };
}

/** A row that the statement itself inserted has no xmax. Partitioned tables do not return theirs. */
const isNew = ({ existing }: PgTarget) => (existing?.kind === 'p' ? 'true' : 't.xmax = 0');
