import type { PgSession } from './session.ts';
import { columnList, identifier } from './sql.ts';
import type { Target } from './target.ts';

/**
 * Merges the stage into the table by the primary key, in the open transaction: of rows with the same key the one with
 * the highest cursor wins, then the last to arrive; a row that is there is replaced unless its cursor is higher.
 * @returns rows that were really changed.
 */
export async function mergeStage(
  session: PgSession,
  target: Target,
  stage: { name: string; sequence: string },
): Promise<number> {
  const { rows } = await session.query(
    `with merged as (${mergeStatement(target, stage)})
     select count(*) filter (where not inserted) from merged`,
    [],
    { slow: true },
  );
  return Number(rows[0]?.[0] ?? 0);
}

function mergeStatement(target: Target, stage: { name: string; sequence: string }): string {
  const names = target.columns.map(({ name }) => name);
  const key = columnList(target.primary_key);
  const cursor = target.cursor_column === null ? null : identifier(target.cursor_column);
  const order = [key, cursor && `${cursor} desc nulls last`, `${identifier(stage.sequence)} desc`]
    .filter(Boolean)
    .join(', ');
  const rest = names.filter((name) => !target.primary_key.includes(name)).map(identifier);
  const notOlder = cursor ? `(t.${cursor} is null or excluded.${cursor} >= t.${cursor}) and ` : '';
  const values = (side: string) => `row(${rest.map((name) => `${side}.${name}`).join(', ')})`;
  // Compares the stored bytes: unlike = it works for json and tells 1.0 from 1.00.
  const update = `do update set ${rest.map((name) => `${name} = excluded.${name}`).join(', ')}
    where ${notOlder}pg_catalog.record_image_ne(${values('t')}, ${values('excluded')})`;
  return `insert into ${target.relation} as t (${columnList(names)})
    select distinct on (${key}) ${columnList(names)} from ${identifier(stage.name)} order by ${order}
    on conflict (${key}) ${rest.length ? update : 'do nothing'}
    returning ${inserted(target)} as inserted`;
}

/** A row that the statement itself made has no xmax. Partitioned tables do not tell theirs. */
const inserted = ({ existing }: Target) => (existing?.kind === 'p' ? 'true' : 't.xmax = 0');
