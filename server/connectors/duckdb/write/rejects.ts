import type { DuckDBConnection } from '@duckdb/node-api';
import type { Cell } from '../../contract/connector.ts';
import { DELETED, REJECTED_TABLE, type RejectCount, rejectedNames } from '../../kits/sql/rejects.ts';
import { isMerge, type Target } from '../../kits/sql/target.ts';
import { execute, query } from '../connection/engine.ts';
import { isViolation } from '../connection/failures.ts';
import { literal, relation } from '../connection/sql.ts';
import { duckdb } from './dialect.ts';
import { type Stage, STAGE } from './stage.ts';
import { valueSql } from '../connection/types.ts';

/** Rejected rows until the commit, with the cells of each row's key by their places in the stage. */
export const WAITING = 'temp.main.rejected';
/** The place of a row that is not in the stage. */
const UNSTAGED = '-1';

/** Takes rows that cannot be loaded out of the stage. The commit of the others adds them to `_rejected`. */
export class DuckDbRejects {
  #waiting = 0;

  constructor(
    private readonly work: { connection: DuckDBConnection; target: Target; stage: Stage },
    readonly rejected: RejectCount,
  ) {}

  /** Keeps a row that was never staged. */
  async refuse(row: Cell[], reason: string, isDelete: boolean): Promise<void> {
    const { connection, target, stage } = this.work;
    const given = isDelete ? DELETED + reason : reason;
    this.rejected.add(1, given);
    await this.#ensureWaiting();
    const content = JSON.stringify(
      Object.fromEntries(target.columns.map(({ name }, at) => [name, row[at]?.toWellFormed() ?? null])),
    );
    const key = stage.key.map((at) => (isDelete || row[at] == null ? 'NULL' : literal(row[at])));
    const values = [UNSTAGED, literal(given), literal(content), ...key].join(', ');
    await execute(connection, `INSERT INTO ${WAITING} VALUES (${values})`);
    this.#waiting += 1;
    if (!isDelete) stage.refused = true;
  }

  async #ensureWaiting(): Promise<void> {
    const key = this.work.stage.key.map((at) => `, c${at} VARCHAR`).join('');
    const columns = `place BIGINT, reason VARCHAR, content JSON${key}`;
    await execute(this.work.connection, `CREATE TEMP TABLE IF NOT EXISTS rejected (${columns})`);
  }

  /** Rows with a value that does not fit its column, or without a key. */
  async takeMisfits(): Promise<void> {
    const kinds = misfits(this.work.target);
    if (this.work.stage.rows > 0 && kinds.length > 0) await this.#take(kinds);
  }

  /**
   * After a load that failed and was rolled back: takes the first row that breaks a rule of the table, found by bisection.
   * `load` loads the stage in the open transaction. False: something else failed.
   */
  async takeViolation(error: unknown, load: () => Promise<unknown>): Promise<boolean> {
    const { stage } = this.work;
    if (!isViolation(error) || stage.rows === 0) return false;
    let [good, bad, reason] = [-1, await this.#lastRow(), reasonOf(error)];
    while (bad - good > 1) {
      const middle = Math.floor((good + bad) / 2);
      const violation = await stage.upTo(middle, () => this.#violation(load));
      if (violation === null) good = middle;
      else [bad, reason] = [middle, violation];
    }
    await this.#take([{ where: `rowid = ${bad}`, reason: literal(reason) }]);
    return true;
  }

  /** In the transaction of the others. */
  async commit(): Promise<void> {
    if (this.#waiting === 0) return;
    const { connection, target } = this.work;
    const { connection_id, connection_run_id, stream_run_id, table } = target;
    const values = [connection_id, connection_run_id, stream_run_id, table].map(literal).join(', ');
    const into = relation(target.schema, REJECTED_TABLE);
    await execute(
      connection,
      `INSERT INTO ${into} (${rejectedNames(duckdb)}) SELECT ${values}, reason, content, now() FROM ${WAITING}`,
    );
  }

  /** After the commit. */
  async clear(): Promise<void> {
    if (this.#waiting > 0) await execute(this.work.connection, `DROP TABLE ${WAITING}`);
    this.#waiting = 0;
  }

  async #take(kinds: readonly { where: string; reason: string }[]): Promise<void> {
    const { connection, target, stage } = this.work;
    const reason = `CASE ${kinds.map((kind) => `WHEN ${kind.where} THEN ${kind.reason}`).join(' ')} END`;
    const row = target.columns.map(({ name }, at) => `${literal(name)}, c${at}`).join(', ');
    const key = stage.key.map((at) => `, c${at}`).join('');
    const found = `SELECT rowid AS place, ${reason} AS reason, json_object(${row}) AS content${key} FROM ${STAGE} WHERE reason IS NOT NULL`;
    const which = `${found} ORDER BY place LIMIT ${this.rejected.left + 1}`;
    await this.#ensureWaiting();
    const taken = await execute(connection, `INSERT INTO ${WAITING} ${which}`);
    if (taken === 0) return;
    this.#waiting += taken;
    stage.refused = true;
    const [last] = await query(connection, `SELECT reason FROM ${WAITING} ORDER BY place DESC LIMIT 1`);
    this.rejected.add(taken, last?.[0] ?? '');
    await stage.remove(`rowid IN (SELECT place FROM ${WAITING})`);
  }

  async #lastRow(): Promise<number> {
    const [row] = await query(this.work.connection, `SELECT max(rowid) FROM ${STAGE}`);
    return Number(row?.[0]);
  }

  /** Null: none. */
  async #violation(load: () => Promise<unknown>): Promise<string | null> {
    const { connection } = this.work;
    await execute(connection, 'BEGIN');
    try {
      await load();
      return null;
    } catch (error) {
      if (isViolation(error)) return reasonOf(error);
      throw error;
    } finally {
      await execute(connection, 'ROLLBACK');
    }
  }
}

const reasonOf = (error: unknown) => (error as Error).message.split('\n')[0] ?? '';

function misfits(target: Target): { where: string; reason: string }[] {
  return target.typed.flatMap(({ name, type }, at) => {
    const cell = `c${at}`;
    const misfit = {
      where: `${cell} IS NOT NULL AND TRY(${valueSql(cell, type)}) IS NULL`,
      reason: `${literal(`${name} has "`)} || left(${cell}, 100) || ${literal(`", which is not a valid ${type}`)}`,
    };
    const isKey = isMerge(target) && target.primary_key.includes(name);
    const keyless = { where: `${cell} IS NULL`, reason: literal(`it has no ${name}, which is part of its key`) };
    return [...(type === 'VARCHAR' ? [] : [misfit]), ...(isKey ? [keyless] : [])];
  });
}
