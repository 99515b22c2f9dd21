import { latestChanges, type StagedChanges, unusedPrefix } from '../../kits/sql/staged-changes.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import type { MysqlSession } from '../connection/session.ts';
import { columnList, identifier } from '../connection/sql.ts';
import { tableOptions } from './tables.ts';
import type { Target } from './target.ts';

export interface Stage {
  relation: string;
  /** A table beside it for the last change of each key. */
  latest: string;
  /** Where the rows are put when the stage has to be merged in parts (merge-rejects.ts). */
  aside: string;
  /** The column that keeps the order of arrival. */
  sequence: string;
  /** The column that says what happened to a row (latest-changes.ts). */
  change: string;
  /** Null: rows only, no changes. */
  changes: StagedChanges | null;
  /** Rows of the table that have no staged row of their key are gone. */
  complete: boolean;
}

/**
 * Brings the stage into the table by the primary key, in the open transaction, as row-changes.ts says. Of rows with the
 * same key the one with the highest cursor wins, then the last to arrive, and a row that is there is replaced unless its
 * cursor is higher; of changes, the last to arrive.
 * @returns rows that were really changed, and rows that are gone or marked as such.
 */
export async function mergeStage(
  session: MysqlSession,
  target: Target,
  stage: Stage,
): Promise<{ updated: number; deleted: number }> {
  const run = (statement: string) => session.query(statement, { slow: true });
  const { changes } = stage;
  const duplicates = ({ info }: { info: string }) => Number(/Duplicates: (\d+)/.exec(info)?.[1] ?? 0);
  if (!changes && !stage.complete && target.mode !== 'update') {
    return { updated: duplicates(await run(upsert(target, `(${newest(target, stage)}) as newest`))), deleted: 0 };
  }
  const ordered = changes ? { ...target, cursor_column: null } : target;
  const prefix = prefixOf(target, stage);
  await run(`drop temporary table if exists ${stage.latest}`);
  await run(
    `create temporary table ${stage.latest} (unique key (${columnList(target.primary_key)})) ${tableOptions(session.version)}
     as ${changes ? lastChanges(target, stage, changes) : `select newest.*, '' as ${prefix}what from (${newest(target, stage)}) as newest`}`,
  );
  const counts = { updated: 0, deleted: 0 };
  const same = sameKey(target);
  if (target.mode !== 'update') {
    if (changes?.truncated || stage.complete) counts.deleted += await removeMissing(session, target, stage.latest);
    if (changes?.deletes) {
      const gone = remove(target, `join ${stage.latest} as s on ${same}`, `s.${prefix}what = 'd'`);
      counts.deleted += (await run(gone)).count;
    }
  }
  const join = `${target.relation} as t join ${stage.latest} as s on ${same}`;
  if (changes?.unchanged.size)
    counts.updated += (await run(replace(ordered, { join, prefix, changes, what: 'u' }))).count;
  if (target.mode === 'update')
    counts.updated += (await run(replace(ordered, { join, prefix, changes, what: '' }))).count;
  else {
    const whole = `(select * from ${stage.latest} where ${prefix}what = '') as newest`;
    counts.updated += duplicates(await run(upsert(ordered, whole)));
  }
  await run(`drop temporary table ${stage.latest}`);
  return counts;
}

/** Removes the rows of the table that have no row of their key in a temporary table. @returns how many. */
export async function removeMissing(session: MysqlSession, target: Target, from: string): Promise<number> {
  const missing = `not exists (select 1 from ${from} as s where ${sameKey(target)})`;
  return (await session.query(remove(target, '', missing), { slow: true })).count;
}

const prefixOf = (target: Target, stage: Stage) =>
  unusedPrefix([...target.columns.map(({ name }) => name), stage.change, stage.sequence]);

const sameKey = ({ primary_key }: Target) =>
  primary_key.map((name) => `s.${identifier(name)} = t.${identifier(name)}`).join(' and ');

const isSoft = ({ mode }: Target) => mode === 'soft_delete';
const deletedAt = identifier(DELETED_AT);

const remove = (target: Target, join: string, which: string) =>
  isSoft(target)
    ? `update ${target.relation} as t ${join} set t.${deletedAt} = utc_timestamp(6) where t.${deletedAt} is null and ${which}`
    : `delete t from ${target.relation} as t ${join} where ${which}`;

/** The rows of a stage without changes, one a key. */
function newest(target: Target, stage: Stage): string {
  const columns = columnList(target.columns.map(({ name }) => name));
  const cursor = target.cursor_column;
  const order = [cursor !== null && `${identifier(cursor)} desc`, `${identifier(stage.sequence)} desc`].filter(Boolean);
  const place = identifier(`${prefixOf(target, stage)}place`);
  const ranked = `select ${columns}, row_number() over (partition by ${columnList(target.primary_key)}
    order by ${order.join(', ')}) as ${place} from ${stage.relation}`;
  return `select ${columns} from (${ranked}) as ranked where ${place} = 1`;
}

const lastChanges = (target: Target, stage: Stage, { unchanged }: StagedChanges) =>
  latestChanges({
    from: stage.relation,
    columns: target.columns.map(({ name }) => identifier(name)),
    key: target.primary_key.map(identifier),
    change: identifier(stage.change),
    sequence: identifier(stage.sequence),
    unchanged,
    prefix: prefixOf(target, stage),
  });

/** Sets the rows that are there, and counts those that differ: the driver has the server count all that match. */
function replace(
  target: Target,
  how: { join: string; prefix: string; changes: StagedChanges | null; what: '' | 'u' },
): string {
  const { prefix, changes, what } = how;
  const value = (name: string, index: number) =>
    what === 'u' && changes?.unchanged.has(index)
      ? `if(s.${prefix}keep${index} = 1, t.${identifier(name)}, s.${identifier(name)})`
      : `s.${identifier(name)}`;
  const rest = target.columns
    .map(({ name }, index) => ({
      name: identifier(name),
      key: target.primary_key.includes(name),
      value: value(name, index),
    }))
    .filter(({ key }) => !key);
  const cursor = target.cursor_column === null ? null : identifier(target.cursor_column);
  const newer = cursor ? `(t.${cursor} is null or s.${cursor} >= t.${cursor}) and ` : '';
  const sets = [
    ...rest.map((one) => `t.${one.name} = ${one.value}`),
    ...(isSoft(target) ? [`t.${deletedAt} = null`] : []),
  ];
  const differs = [
    ...rest.map((one) => `not (t.${one.name} <=> ${one.value})`),
    ...(isSoft(target) ? [`t.${deletedAt} is not null`] : []),
  ];
  // A table of nothing but keys has nothing to be updated.
  const [key] = target.primary_key.map(identifier);
  return `update ${how.join} set ${sets.join(', ') || `t.${key} = t.${key}`}
    where s.${prefix}what = '${what}' and ${newer}(${differs.join(' or ') || 'false'})`;
}

function upsert(target: Target, from: string): string {
  const columns = columnList(target.columns.map(({ name }) => name));
  return `insert into ${target.relation} (${columns}) select ${columns} from ${from}
    on duplicate key update ${assignments(target).join(', ')}`;
}

/** The server assigns from left to right and sees what it has assigned: the cursor, which is compared, comes last. */
function assignments(target: Target): string[] {
  const own = (name: string) => `${target.relation}.${identifier(name)}`;
  const cursor = target.cursor_column;
  const compared = cursor !== null && !target.primary_key.includes(cursor) ? cursor : null;
  const rest = target.columns.map(({ name }) => name).filter((name) => !target.primary_key.includes(name));
  const back = isSoft(target) ? [`${own(DELETED_AT)} = null`] : [];
  if (rest.length + back.length === 0) return [`${own(target.primary_key[0]!)} = ${own(target.primary_key[0]!)}`];
  if (compared === null) return [...rest.map((name) => `${own(name)} = values(${identifier(name)})`), ...back];
  const isNewer = `${own(compared)} is null or values(${identifier(compared)}) >= ${own(compared)}`;
  const replaced = [...rest.filter((name) => name !== compared), compared].map(
    (name) => `${own(name)} = if(${isNewer}, values(${identifier(name)}), ${own(name)})`,
  );
  return [...back, ...replaced];
}
