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
import { mergeStage, removeMissing, type Stage } from './merge.ts';
import type { MysqlSession } from '../connection/session.ts';
import { columnList, identifier, literal } from '../connection/sql.ts';
import { tableOptions } from './tables.ts';
import type { Column, Target } from './target.ts';

interface Work {
  session: MysqlSession;
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
      if (!(error instanceof DataError)) throw error;
      throw new DataError(error.code, `${error.message} (table ${target.schema}.${target.table})`);
    });
  }
  return mergeKeeping(
    { session, merge: () => mergeStage(session, target, stage), divide: () => divide(work) },
    rejects,
  );
}

/** For a row that could not be staged the one that the table has of its key is staged, so that it is not taken for gone. */
export async function stageAsItIs({ session, target, stage }: Work, row: readonly Cell[]): Promise<void> {
  const names = columnList(target.columns.map(({ name }) => name));
  const key = target.typed.flatMap((column, index) => {
    if (!target.primary_key.includes(column.name)) return [];
    const cell = literal(row[index] ?? '');
    // Alone the first takes a word for a zero; alone the second would look at every row.
    return [`${identifier(column.name)} = ${cell}`, `${textOf(column)} = ${cell}`];
  });
  const there = `select ${names} from ${target.relation} where ${key.join(' and ')}`;
  try {
    await session.query(`insert into ${stage.relation} (${names}) ${there}`, { slow: true });
  } catch (error) {
    // No row of the table can have a key that is none of its type.
    if (!(error instanceof DataError)) throw error;
  }
}

/** Sets the rows of the stage aside, numbered by their keys, and removes what no staged row speaks of. */
async function divide({ session, target, stage }: Work): Promise<{ divided: DividedStage; gone: number }> {
  const names = target.columns.map(({ name }) => name);
  const prefix = unusedPrefix([...names, stage.change, stage.sequence]);
  const place = identifier(`${prefix}place`);
  const [sequence, change] = [identifier(stage.sequence), identifier(stage.change)];
  const staged = columnList([...names, stage.change, stage.sequence]);
  const first = `min(${sequence}) over (partition by ${columnList(target.primary_key)}) as ${prefix}first`;
  const run = (text: string) => session.query(text, { slow: true });
  await run(`drop temporary table if exists ${stage.aside}`);
  await run(
    `create temporary table ${stage.aside} (key (${place}), key (${sequence})) ${tableOptions(session.version)}
     as select ${staged}, dense_rank() over (order by ${prefix}first) - 1 as ${place}
       from (select ${staged}, ${first} from ${stage.relation}) as firsts`,
  );
  const { rows } = await session.query(`select coalesce(max(${place}) + 1, 0) from ${stage.aside}`);
  const part = partOf(stage);
  const gone = missingAreGone(target, stage) ? await removeMissing(session, target, stage.aside) : 0;
  const divided: DividedStage = {
    session,
    keys: Number(rows[0]?.[0]),
    async take(what) {
      const which = 'sequence' in what ? `${sequence} = ${what.sequence}` : isOfPart(place, what);
      // Not TRUNCATE, which would commit.
      await run(`delete from ${stage.relation}`);
      await run(`insert into ${stage.relation} (${staged}) select ${staged} from ${stage.aside} where ${which}`);
    },
    merge: () => mergeStage(session, target, part),
    async rowsOf(key) {
      const cells = target.typed.map(textOf).join(', ');
      const text = `select ${sequence}, coalesce(${change}, '') = 'd', ${cells} from ${stage.aside}
        where ${place} = ${key} order by ${sequence}`;
      const found = await session.query(text);
      return found.rows.map(([at, isDelete, ...row]) => ({ sequence: at!, isDelete: isDelete === '1', cells: row }));
    },
  };
  return { divided, gone };
}

/** What the cell was, of the value that a column took of it. */
function textOf({ name, shape }: Column): string {
  const column = identifier(name);
  switch (shape) {
    case 'bytes':
      return `concat('\\\\x', lower(hex(${column})))`;
    case 'bits':
      return `bin(${column} + 0)`;
    case 'flag':
      return `case ${column} when 0 then 'false' when 1 then 'true' end`;
    case 'instant':
      return `concat(${column}, '+00')`;
    default:
      return `convert(${column} using utf8mb4)`;
  }
}
