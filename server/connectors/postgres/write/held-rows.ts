import type { Cell } from '../../contract/connector.ts';
import { encodeCopyText } from '../../cells/copy-text.ts';
import { mergePlan } from '../../kits/sql/merge/merge.ts';
import { type Stage, stagedMerge } from '../../kits/sql/stage.ts';
import { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import { columnList, identifier, literal } from '../connection/sql.ts';
import { isBuiltin } from '../connection/types.ts';
import { postgres } from './dialect.ts';
import { planStatement } from './merge/merge.ts';
import type { PgTarget } from './target.ts';

/** Beyond these a stage costs less. The bytes are those of all streams of a commit, which are held at the same time. */
export const MAX_HELD_ROWS = 2_000;
const MAX_BYTES = 1024 * 1024;

/** Bytes that streams with common commits hold. */
export interface HeldBytes {
  bytes: number;
}

/** Rows of one stream that wait in memory for their commit. */
export class HeldRows {
  readonly rows: Cell[][] = [];
  bytes = 0;
  readonly #key: readonly number[];

  constructor(
    target: PgTarget,
    private readonly all: HeldBytes,
    private readonly onNul: () => void,
  ) {
    this.#key = target.primary_key.map((name) => target.columns.findIndex((column) => column.name === name));
  }

  /** @returns false: they are too many, or a stage refuses them */
  take(rows: readonly Cell[][], marked: boolean): boolean {
    if (this.rows.length + rows.length > MAX_HELD_ROWS) return false;
    if (rows.some((row) => this.#key.some((at) => row[at] === null))) return false;
    const bytes = encodeCopyText(rows, this.onNul).length;
    if (this.all.bytes + bytes > MAX_BYTES) return false;
    this.bytes += bytes;
    this.all.bytes += bytes;
    for (const row of rows) this.rows.push(marked ? row : [...row, null]);
    return true;
  }

  clear(): void {
    this.all.bytes -= this.bytes;
    this.bytes = 0;
    this.rows.length = 0;
  }
}

/** A type of a user may have rules that only its own input function knows. */
export const takesDirectly = ({ typed }: PgTarget): boolean => typed.every(({ type }) => isBuiltin(type));

/** A statement that merges held rows. The rows are a literal of it, so it goes in a message with others. */
export interface DirectMerge {
  /** Null: run `execute` alone. */
  prepare: { name: string; text: string } | null;
  execute: string;
}

/** Merges as a stage does, and reads the values as COPY does. */
export function directMerge(target: PgTarget, stage: Stage, { rows }: HeldRows): DirectMerge {
  const json = literal(JSON.stringify(rows.map(objectOf)));
  const changes = stage.changes && withDeletes(stage.changes);
  const text = (source: string) => {
    const staged = { ...stagedMerge(postgres, target, stage), changes, from: rowsFrom(target, stage, source) };
    return planStatement({ target, name: stage.latest }, mergePlan(postgres, target, staged));
  };
  // Which columns are left unchanged differs too often for a plan that is kept.
  if (changes?.unchanged.size) return { prepare: null, execute: text(`${json}::json`) };
  const name = identifier(`merge_${Bun.hash(`${stage.relation} ${changes !== null}`).toString(36)}`);
  return { prepare: { name, text: `prepare ${name} (json) as ${text('$1')}` }, execute: `execute ${name} (${json})` };
}

/** One plan for all commits. */
function withDeletes({ unchanged }: StagedChanges): StagedChanges {
  const changes = new StagedChanges();
  changes.deletes = true;
  for (const index of unchanged) changes.unchanged.add(index);
  return changes;
}

function rowsFrom({ typed }: PgTarget, { change, sequence, prefix }: Stage, source: string): string {
  const names = typed.map(({ name }) => name);
  const isJson = (type: string) => type === 'json' || type === 'jsonb';
  const read = typed.map(({ type }, at) => `"${at}" ${isJson(type) ? 'text' : type}`);
  const shown = typed.map(({ name, type }) =>
    isJson(type) ? `${identifier(name)}::${type} as ${identifier(name)}` : identifier(name),
  );
  return `(select ${shown.join(', ')}, ${change}, ${sequence} from rows from (json_to_recordset(${source})
    as (${read.join(', ')}, "${typed.length}" text)) with ordinality as ${prefix}held(${columnList(names)}, ${change}, ${sequence}))
    as ${prefix}rows`;
}

const objectOf = (row: readonly Cell[]) => Object.fromEntries(row.map((cell, at) => [at, cell && storable(cell)]));

/** As COPY stores it: without NUL, and no half of a surrogate pair. */
const storable = (cell: string) => (cell.includes('\0') ? cell.replaceAll('\0', '') : cell).toWellFormed();
