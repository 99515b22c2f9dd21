import { latestChanges, type StagedChanges, unusedPrefix } from '../../kits/sql/staged-changes.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import type { PgSession } from '../connection/session.ts';
import { SORT_MEMORY } from '../connection/sort-memory.ts';
import { columnList, identifier } from '../connection/sql.ts';
import type { Target } from './target.ts';

export interface Stage {
  name: string;
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
  session: PgSession,
  target: Target,
  stage: Stage,
): Promise<{ updated: number; deleted: number }> {
  await session.query(SORT_MEMORY);
  const { rows } = await session.query(statement(target, stage), [], { slow: true });
  const [updated = 0, deleted = 0] = (rows[0] ?? []).map(Number);
  return { updated, deleted };
}

/** Removes the rows of the table that have no row of their key in the stage. @returns how many. */
export async function removeMissing(session: PgSession, target: Target, { name }: { name: string }): Promise<number> {
  const missing = `not exists (select from ${identifier(name)} s where ${sameKey(target)})`;
  return (await session.query(remove(target, missing), [], { slow: true })).count;
}

const soft = ({ mode }: Target) => mode === 'soft_delete';
const deletedAt = identifier(DELETED_AT);

function statement(target: Target, stage: Stage): string {
  const names = target.columns.map(({ name }) => name);
  const prefix = unusedPrefix([...names, stage.change, stage.sequence]);
  const { changes } = stage;
  const steps: string[] = [];
  const ordered = changes ? { ...target, cursor_column: null } : target;
  let from = `(${latestRows(target, stage)})`;
  if (changes) {
    const staged = {
      from: identifier(stage.name),
      columns: names.map(identifier),
      key: target.primary_key.map(identifier),
      change: identifier(stage.change),
      sequence: identifier(stage.sequence),
      unchanged: changes.unchanged,
      prefix,
    };
    steps.push(`latest as materialized (${latestChanges(staged)})`);
    from = `(select * from latest where ${prefix}what = '')`;
  }
  steps.push(`merged as (${mergeRows(ordered, from)})`);
  const removed: string[] = [];
  const removes = target.mode !== 'update';
  if (changes && changes.deletes && removes) {
    removed.push('gone');
    steps.push(
      `gone as (${remove(target, `exists (select from latest s where ${prefix}what = 'd' and ${sameKey(target)})`)})`,
    );
  }
  if ((changes?.truncated || stage.complete) && removes) {
    removed.push('missing');
    steps.push(
      `missing as (${remove(target, `not exists (select from ${identifier(stage.name)} s where ${sameKey(target)})`)})`,
    );
  }
  if (changes && changes.unchanged.size > 0) steps.push(`patched as (${patchRows(target, changes, prefix)})`);
  const patched = changes && changes.unchanged.size > 0 ? ' + (select count(*) from patched)' : '';
  const deleted = removed.map((step) => `(select count(*) from ${step})`).join(' + ') || '0';
  return `with ${steps.join(',\n')}
    select (select count(*) filter (where not inserted) from merged)${patched}, ${deleted}`;
}

const sameKey = ({ primary_key }: Target) =>
  primary_key.map((name) => `s.${identifier(name)} = t.${identifier(name)}`).join(' and ');

/** The rows of a stage without changes, one a key. */
function latestRows(target: Target, stage: Stage): string {
  const key = columnList(target.primary_key);
  const cursor = target.cursor_column === null ? null : identifier(target.cursor_column);
  const order = [key, cursor && `${cursor} desc nulls last`, `${identifier(stage.sequence)} desc`].filter(Boolean);
  const columns = columnList(target.columns.map(({ name }) => name));
  return `select distinct on (${key}) ${columns} from ${identifier(stage.name)} order by ${order.join(', ')}`;
}

/** Compares the stored bytes: unlike = it works for json and tells 1.0 from 1.00. */
function differs(rest: readonly string[], values: (name: string) => string): string {
  const row = (of: (name: string) => string) => `row(${rest.map(of).join(', ')})`;
  return `pg_catalog.record_image_ne(${row((name) => `t.${name}`)}, ${row(values)})`;
}

const restOf = (target: Target) =>
  target.columns
    .map(({ name }) => name)
    .filter((name) => !target.primary_key.includes(name))
    .map(identifier);

/** What is set besides the columns, and what makes a row worth being written though none of them differs. */
const marks = (target: Target) =>
  soft(target) ? { set: [`${deletedAt} = null`], or: ` or t.${deletedAt} is not null` } : { set: [], or: '' };

function mergeRows(target: Target, from: string): string {
  const names = columnList(target.columns.map(({ name }) => name));
  const rest = restOf(target);
  const cursor = target.cursor_column === null ? null : identifier(target.cursor_column);
  const side = target.mode === 'update' ? 's' : 'excluded';
  const notOlder = cursor ? `(t.${cursor} is null or ${side}.${cursor} >= t.${cursor}) and ` : '';
  const { set, or } = marks(target);
  const assignments = [...rest.map((name) => `${name} = ${side}.${name}`), ...set].join(', ');
  const changed = `${notOlder}(${differs(rest, (name) => `${side}.${name}`)}${or})`;
  if (target.mode === 'update') {
    // A table of nothing but keys has nothing to be updated.
    if (rest.length === 0) return 'select true as inserted where false';
    return `update ${target.relation} as t set ${assignments} from ${from} as s
      where ${sameKey(target)} and ${changed} returning false as inserted`;
  }
  return `insert into ${target.relation} as t (${names}) select ${names} from ${from} as s
    on conflict (${columnList(target.primary_key)}) ${assignments ? `do update set ${assignments} where ${changed}` : 'do nothing'}
    returning ${inserted(target)} as inserted`;
}

/** Rows of which some columns stay as the table has them. */
function patchRows(target: Target, { unchanged }: StagedChanges, prefix: string): string {
  const names = target.columns.map(({ name }) => name);
  const value = (name: string) => {
    const index = names.findIndex((one) => identifier(one) === name);
    return unchanged.has(index)
      ? `case when s.${prefix}keep${index} = 1 then t.${name} else s.${name} end`
      : `s.${name}`;
  };
  const rest = restOf(target);
  const { set, or } = marks(target);
  return `update ${target.relation} as t set ${[...rest.map((name) => `${name} = ${value(name)}`), ...set].join(', ')}
    from latest s where ${prefix}what = 'u' and ${sameKey(target)} and (${differs(rest, value)}${or}) returning 1`;
}

const remove = (target: Target, which: string) =>
  soft(target)
    ? `update ${target.relation} as t set ${deletedAt} = now() where ${deletedAt} is null and ${which} returning 1`
    : `delete from ${target.relation} as t where ${which} returning 1`;

/** A row that the statement itself made has no xmax. Partitioned tables do not tell theirs. */
const inserted = ({ existing }: Target) => (existing?.kind === 'p' ? 'true' : 't.xmax = 0');
