import type { Cell } from '../../contract/connector.ts';
import { DataError } from '../../contract/errors.ts';
import type { Merged } from '../../kits/sql/merge/merge.ts';
import { divideStage, mergeKeeping, stageExisting } from '../../kits/sql/merge/merge-rejects.ts';
import type { Rejects } from '../../kits/sql/rejects.ts';
import { type Stage, stagedMerge } from '../../kits/sql/stage.ts';
import type { Column } from '../../kits/sql/target.ts';
import { identifier } from '../connection/sql.ts';
import { mergeStage } from './merge.ts';
import type { MysqlTarget } from './target.ts';
import type { Work } from './work.ts';
import { missingRemoval } from '../../kits/sql/merge/staged-merge.ts';

/**
 * Merges the stage, and keeps rows that break a rule of the table where rejected rows are kept.
 * @returns `rejected`: rows that were counted as loaded when they were staged
 */
export async function mergeRows(
  work: Work & { stage: Stage },
  rejects: Rejects | null,
): Promise<Merged & { rejected?: number }> {
  const { session, dialect, target, stage } = work;
  const merge = (part: Stage) => mergeStage(work, part);
  if (!rejects) {
    return merge(stage).catch((error: unknown) => {
      if (!(error instanceof DataError)) throw error;
      throw new DataError(error.code, `${error.message} (table ${target.schema}.${target.table})`);
    });
  }
  const run = async (text: string) => (await session.query(text, { slow: true })).count;
  const divide = () =>
    divideStage({
      session,
      dialect,
      target,
      stage,
      merge,
      removeMissing: (from) => run(missingRemoval(dialect, target, stagedMerge(dialect, target, stage), from)),
      async setAside(select, place) {
        await run(`drop temporary table if exists ${stage.aside}`);
        const keys = `(key (${place}), key (${stage.sequence}))`;
        await run(`create temporary table ${stage.aside} ${keys} ${dialect.tableOptions} as ${select}`);
      },
      // TRUNCATE would commit.
      empty: `delete from ${stage.relation}`,
      overriding: '',
      cellText: (column) => textOf(target, column, ''),
    });
  return mergeKeeping({ session, merge: () => merge(stage), divide }, rejects);
}

/** For a row that could not be staged: its row in the table does not count as gone. */
export const stageAsItIs = (work: Work & { stage: Stage }, row: readonly Cell[]): Promise<void> =>
  stageExisting(
    work,
    row,
    // The first comparison alone takes a word for a zero; the second one alone would read every row.
    (column, cell) => `t.${identifier(column.name)} = ${cell} and ${textOf(work.target, column, 't.')} = ${cell}`,
  );

/** The cell that became the value of a column. */
function textOf({ typed }: MysqlTarget, { name }: Column, alias: '' | 't.'): string {
  const column = `${alias}${identifier(name)}`;
  switch (typed.find((one) => one.name === name)?.shape) {
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
