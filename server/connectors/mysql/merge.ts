import type { MysqlSession } from './session.ts';
import { columnList, identifier } from './sql.ts';
import type { Target } from './target.ts';

/**
 * Merges the stage into the table by the primary key, in the open transaction: of rows with the same key the one with
 * the highest cursor wins, then the last to arrive; a row that is there is replaced unless its cursor is higher.
 * @returns rows that were really changed.
 */
export async function mergeStage(
  session: MysqlSession,
  target: Target,
  stage: { relation: string; sequence: string },
): Promise<number> {
  const { info } = await session.query(mergeStatement(target, stage), { slow: true });
  return Number(/Duplicates: (\d+)/.exec(info)?.[1] ?? 0);
}

function mergeStatement(target: Target, stage: { relation: string; sequence: string }): string {
  const names = target.columns.map(({ name }) => name);
  const cursor = target.cursor_column;
  const order = [cursor !== null && `${identifier(cursor)} desc`, `${identifier(stage.sequence)} desc`].filter(Boolean);
  const place = identifier(`_${stage.sequence}`);
  const ranked = `select ${columnList(names)}, row_number() over (partition by ${columnList(target.primary_key)}
    order by ${order.join(', ')}) as ${place} from ${stage.relation}`;
  return `insert into ${target.relation} (${columnList(names)})
    select ${columnList(names)} from (${ranked}) as newest where ${place} = 1
    on duplicate key update ${assignments(target).join(', ')}`;
}

/** The server assigns from left to right and sees what it has assigned: the cursor, which is compared, comes last. */
function assignments(target: Target): string[] {
  const own = (name: string) => `${target.relation}.${identifier(name)}`;
  const cursor = target.cursor_column;
  const compared = cursor !== null && !target.primary_key.includes(cursor) ? cursor : null;
  const rest = target.columns.map(({ name }) => name).filter((name) => !target.primary_key.includes(name));
  if (rest.length === 0) return [`${own(target.primary_key[0]!)} = ${own(target.primary_key[0]!)}`];
  if (compared === null) return rest.map((name) => `${own(name)} = values(${identifier(name)})`);
  const isNewer = `${own(compared)} is null or values(${identifier(compared)}) >= ${own(compared)}`;
  return [...rest.filter((name) => name !== compared), compared].map(
    (name) => `${own(name)} = if(${isNewer}, values(${identifier(name)}), ${own(name)})`,
  );
}
