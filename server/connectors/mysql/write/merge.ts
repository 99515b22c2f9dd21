import { type Merged, mergePlan, runMerge } from '../../kits/sql/merge/merge.ts';
import { type Stage, stagedMerge } from '../../kits/sql/stage.ts';
import type { Work } from './work.ts';
import type { MergeDialect, Upsert } from '../../kits/sql/merge/merge-dialect.ts';

export const mergeSql: MergeDialect = {
  indexesLatest: true,
  differs: (pairs) => pairs.map(([one, other]) => `not (${one} <=> ${other})`).join(' or '),
  update: ({ relation, from, on, where }, assignments) => {
    const set = assignments.map(([own, value]) => `t.${own} = ${value}`).join(', ');
    return `update ${relation} as t ${joined(from, on)} set ${set} where ${where}`;
  },
  remove: ({ relation, from, on, where }) => `delete t from ${relation} as t ${joined(from, on)} where ${where}`,
  upsert: (parts) => {
    const names = parts.columns.map(({ own }) => own).join(', ');
    return `insert into ${parts.relation} (${names}) select ${names} from (${parts.from}) as newest
      on duplicate key update ${assignmentsOf(parts).join(', ')}`;
  },
};

const joined = (from: string | null, on: string) => (from === null ? '' : `join ${from} as s on ${on}`);

/** The server assigns from left to right and sees what it has assigned: the cursor, which is compared, comes last. */
function assignmentsOf({ relation, columns, cursor, marks }: Upsert): string[] {
  const table = (own: string) => `${relation}.${own}`;
  const rest = columns.filter(({ isKey }) => !isKey).map(({ own }) => own);
  const back = marks.map((mark) => `${relation}.${mark}`);
  const [key] = columns.filter(({ isKey }) => isKey).map(({ own }) => table(own));
  if (rest.length + back.length === 0) return [`${key} = ${key}`];
  const compared = cursor && rest.includes(cursor.own) ? cursor.own : null;
  if (compared === null) return [...rest.map((own) => `${table(own)} = values(${own})`), ...back];
  const isNewer = `${table(compared)} is null or values(${compared}) >= ${table(compared)}`;
  const ordered = [...rest.filter((own) => own !== compared), compared];
  return [...back, ...ordered.map((own) => `${table(own)} = if(${isNewer}, values(${own}), ${table(own)})`)];
}

const duplicates = ({ info }: { info: string }) => Number(/Duplicates: (\d+)/.exec(info)?.[1] ?? 0);

/** Merges the stage, in the open transaction. The last change of each key goes to a temporary table with an index. */
export function mergeStage({ session, dialect, target }: Work, stage: Stage): Promise<Merged> {
  const plan = mergePlan(dialect, target, stagedMerge(dialect, target, stage));
  return runMerge(session, plan, {
    async keep(latest) {
      await session.query(`drop temporary table if exists ${stage.latest}`);
      const table = `${stage.latest} (unique key (${plan.key.join(', ')})) ${dialect.tableOptions}`;
      await session.query(`create temporary table ${table} as ${latest}`, { slow: true });
    },
    upsert: async (text) => duplicates(await session.query(text, { slow: true })),
    drop: async () => void (await session.query(`drop temporary table ${stage.latest}`)),
  });
}
