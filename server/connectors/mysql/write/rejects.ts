import type { DataError } from '../../contract/errors.ts';
import { shortHash } from '../../kits/sql/names.ts';
import {
  insertRejected,
  type RejectCount,
  rejectedColumns,
  rejectedNames,
  REJECTED_TABLE,
  type Rejecting,
  Rejects,
} from '../../kits/sql/rejects.ts';
import { literal, relation } from '../connection/sql.ts';
import type { RowLoader } from './row-loader.ts';
import type { Work } from './work.ts';

/**
 * Rejected rows wait in a temporary table for the commit that adds them to `_rejected`: the statements with which an
 * overwrite defines tables would commit them too early.
 */
export class MysqlRejects {
  readonly rejects: Rejects;
  readonly #waiting: string;
  #prepared = false;
  #kept = 0;

  constructor(
    private readonly work: Work,
    rejected: RejectCount,
    private readonly loader: RowLoader,
    present?: Rejecting['present'],
  ) {
    const { session, target } = work;
    this.#waiting = relation(target.schema, `rejected_${shortHash(target.stream_id)}`);
    const into = { session, load: loader.load.bind(loader), rowOf, reasonOf, keep: this.#keep, present };
    this.rejects = new Rejects(rejected, into, target);
  }

  /** Before the transaction that `add` and `commit` are called in. */
  async prepare(): Promise<void> {
    const { session, dialect } = this.work;
    const columns = rejectedColumns(this.work).join(', ');
    await session.query(
      this.#prepared
        ? `delete from ${this.#waiting}`
        : `create temporary table ${this.#waiting} (${columns}) ${dialect.tableOptions}`,
    );
    [this.#prepared, this.#kept] = [true, 0];
  }

  async add(rows: Parameters<Rejects['load']>[0]): Promise<void> {
    this.loader.count(await this.rejects.load(rows));
  }

  async commit(): Promise<void> {
    if (this.#kept === 0) return;
    const { session, dialect, target } = this.work;
    const names = rejectedNames(dialect);
    const table = relation(target.schema, REJECTED_TABLE);
    await session.query(`insert into ${table} (${names}) select ${names} from ${this.#waiting}`);
  }

  readonly #keep = async (content: string, reason: string) => {
    const { session, dialect, target } = this.work;
    const { connection_id, connection_run_id, stream_run_id, table } = target;
    const values = [connection_id, connection_run_id, stream_run_id, table, reason, content].map(literal);
    await session.query(insertRejected(dialect, this.#waiting, values));
    this.#kept += 1;
  };
}

const PLACE = / at row (\d+)/;
function rowOf(error: unknown): number | null {
  const [, row] = PLACE.exec((error as Error).message) ?? [];
  return row === undefined ? null : Math.max(0, Number(row) - 1);
}
const reasonOf = ({ message }: DataError) => message.replace(PLACE, '');
