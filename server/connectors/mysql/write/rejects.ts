import type { DataError } from '../../contract/errors.ts';
import { REJECTED_TABLE, type RejectCount, type Rejecting, Rejects } from '../../kits/sql/rejects.ts';
import type { RowLoader } from './row-loader.ts';
import type { MysqlSession } from '../connection/session.ts';
import { literal, relation, shortHash } from '../connection/sql.ts';
import { tableOptions } from './tables.ts';
import type { Target } from './target.ts';

const COLUMNS = 'connection_id, connection_run_id, stream_run_id, table_name, reason, `row`, rejected_at';
const DEFINITIONS = `connection_id varchar(255) not null, connection_run_id varchar(255) not null,
  stream_run_id varchar(255) not null, table_name varchar(255) not null, reason longtext not null,
  \`row\` json not null, rejected_at datetime(6) not null default current_timestamp(6)`;

/** Call it under `lockDefinitions`. */
export async function ensureRejectedTable(session: MysqlSession, schema: string): Promise<void> {
  const { rows } = await session.query(
    `select 1 from information_schema.tables
      where table_schema = ${literal(schema)} and table_name = ${literal(REJECTED_TABLE)}`,
  );
  // Not "if not exists": that asks for the right to create even when there is nothing to be created.
  if (rows.length > 0) return;
  await session.query(
    `create table ${relation(schema, REJECTED_TABLE)} (${DEFINITIONS}, index (connection_run_id)) ${tableOptions(session.version)}`,
  );
}

/**
 * Rows that were rejected wait in a temporary table for the commit that brings them to `_rejected`: what an overwrite
 * defines before that would commit them too early.
 */
export class MysqlRejects {
  readonly rejects: Rejects;
  readonly #waiting: string;
  #prepared = false;
  #kept = 0;

  constructor(
    private readonly work: { session: MysqlSession; target: Target },
    readonly rejected: RejectCount,
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
    const { session } = this.work;
    if (this.#prepared) await session.query(`delete from ${this.#waiting}`);
    else
      await session.query(`create temporary table ${this.#waiting} (${DEFINITIONS}) ${tableOptions(session.version)}`);
    [this.#prepared, this.#kept] = [true, 0];
  }

  async add(rows: Parameters<Rejects['load']>[0]): Promise<void> {
    this.loader.count(await this.rejects.load(rows));
  }

  async commit(): Promise<void> {
    if (this.#kept === 0) return;
    const table = relation(this.work.target.schema, REJECTED_TABLE);
    await this.work.session.query(`insert into ${table} (${COLUMNS}) select ${COLUMNS} from ${this.#waiting}`);
  }

  readonly #keep = async (content: string, reason: string) => {
    const { connection_id, connection_run_id, stream_run_id, table } = this.work.target;
    const values = [connection_id, connection_run_id, stream_run_id, table, reason, content].map(literal).join(', ');
    await this.work.session.query(`insert into ${this.#waiting} (${COLUMNS}) values (${values}, utc_timestamp(6))`);
    this.#kept += 1;
  };
}

const PLACE = / at row (\d+)/;
function rowOf(error: unknown): number | null {
  const [, row] = PLACE.exec((error as Error).message) ?? [];
  return row === undefined ? null : Math.max(0, Number(row) - 1);
}
const reasonOf = ({ message }: DataError) => message.replace(PLACE, '');
