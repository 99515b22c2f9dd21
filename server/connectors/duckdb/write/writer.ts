import type { Cell, ConnectorContext } from '../../contract/connector.ts';
import type { SqlSession } from '../../kits/sql/dialect.ts';
import type { Merged } from '../../kits/sql/merge/merge.ts';
import type { DataError } from '../../contract/errors.ts';
import { gateOf } from '../../kits/sql/gate.ts';
import { shortHash } from '../../kits/sql/names.ts';
import { READY, readyTable } from '../../kits/sql/publish/ready.ts';
import { RejectCount } from '../../kits/sql/rejects.ts';
import type { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import type { StateRow } from '../../kits/sql/state-row.ts';
import { createTable } from '../../kits/sql/tables.ts';
import { isMerge, type Target } from '../../kits/sql/target.ts';
import { type Loaded, type RowLoad, SqlWriter } from '../../kits/sql/writer.ts';
import { type Engine, execute, sessionOf } from '../connection/engine.ts';
import { duckDbError, isDuplicate, isMisfit, type Place } from '../connection/failures.ts';
import { writing } from '../connection/file-access.ts';
import type { DuckDbDestinationConfig } from '../connection/settings.ts';
import { relation } from '../connection/sql.ts';
import { duckdb } from './dialect.ts';
import { merge } from './merge.ts';
import { DuckDbRejects } from './rejects.ts';
import { deleteWindow } from './replace-window.ts';
import { Stage } from './stage.ts';
import { findTable } from './tables.ts';

type Context = ConnectorContext<DuckDbDestinationConfig>;

interface Work {
  engine: Engine;
  place: Place;
  target: Target;
}

/**
 * Rows are staged in memory. Each commit opens the file, loads them and records the state in one transaction, and closes
 * the file: others may open it between the commits, and a crash leaves it as the last commit did.
 */
export function duckDbWriter(ctx: Context, work: Work & { state: StateRow }): SqlWriter {
  const { target, state } = work;
  const rejected = RejectCount.of(target, state.counts);
  const gate = gateOf(duckdb, target);
  return new SqlWriter({ ctx, target, state, rejected, gate, load: new FileLoad(ctx, work, rejected) });
}

class FileLoad implements RowLoad {
  readonly incremental: boolean;
  /** The table that stays aside until it is published. */
  readonly #fresh: string | null;
  readonly #stage: Stage;
  readonly #session: SqlSession;
  readonly #rejects: DuckDbRejects | null;
  #closed = false;

  constructor(
    private readonly ctx: Context,
    private readonly work: Work,
    rejected: RejectCount | null,
  ) {
    const { target, engine, place } = work;
    const { mode, complete, replace_window } = target;
    // A part of these would be nothing to go on from.
    this.incremental = mode !== 'overwrite' && !replace_window && !(mode === 'soft_delete' && complete);
    this.#fresh = target.publish_with == null ? null : freshName(target);
    this.#stage = new Stage(engine.connection, target);
    this.#session = sessionOf(engine.connection, place);
    const stage = { connection: engine.connection, target, stage: this.#stage };
    this.#rejects = rejected && new DuckDbRejects(stage, rejected);
    ctx.signal.addEventListener('abort', this.#interrupt, { once: true });
  }

  async prepare(): Promise<void> {}

  add(rows: Cell[][], { bytes }: { bytes: number }): Promise<void> {
    return this.#stage.add(rows, bytes);
  }

  async reject(row: Cell[], error: DataError, isDelete: boolean): Promise<void> {
    await this.#rejects!.refuse(row, error.message, isDelete);
  }

  changes(): StagedChanges {
    return this.#stage.noted();
  }

  truncate(): Promise<void> {
    return this.#stage.truncate();
  }

  async commit(record: (loaded: Loaded) => Promise<void>): Promise<void> {
    const { engine, place } = this.work;
    this.#stage.close();
    await engine.withMemory(async () => this.#rejects?.takeMisfits());
    await writing(this.ctx, { engine, ...place }, () => this.#commitRows(record));
    await this.#stage.clear();
    await this.#rejects?.clear();
  }

  /**
   * Repeats the commit as an exchange of unique values after a duplicate, then without each row that breaks a rule of the
   * table, where such rows are kept.
   */
  async #commitRows(record: (loaded: Loaded) => Promise<void>): Promise<void> {
    const { connection } = this.work.engine;
    for (let exchange = false; ; ) {
      const load = () => this.#loadRows(exchange);
      try {
        return await inTransaction(connection, async () => {
          const { taken: rows, bytes } = this.#stage;
          // The fence comes first: a fenced attempt must learn that, not what is wrong with its rows.
          const extra = { [READY]: this.#fresh && JSON.stringify(readyTable(this.work.target, this.#fresh)) };
          await record({ rows, bytes, extra });
          const done = await load();
          await this.#rejects?.commit();
          if (done.updated + done.deleted > 0) await record({ rows, bytes, extra, ...done });
        });
      } catch (error) {
        if (!exchange && isMerge(this.work.target) && isDuplicate(error)) exchange = true;
        else if (!(await this.#rejects?.takeViolation(error, load))) throw error;
      }
    }
  }

  /** Brings the staged rows into the table, in the open transaction. */
  async #loadRows(exchange: boolean): Promise<Merged> {
    const { engine, target } = this.work;
    const { connection } = engine;
    const name = this.#fresh ?? target.table;
    const existing = await findTable(connection, target.schema, name);
    const isNew = existing === null || target.mode === 'overwrite';
    if (existing && isNew) await execute(connection, `DROP TABLE ${relation(target.schema, name)}`);
    if (isNew) await createTable({ session: this.#session, dialect: duckdb }, target, { name, key: [] });
    if (isMerge(target)) return merge(this.#session, target, this.#stage, exchange);
    const deleted = target.replace_window ? await deleteWindow(connection, target, target.replace_window) : 0;
    await this.#stage.insert(relation(target.schema, name));
    return { updated: 0, deleted };
  }

  /** Everything that is not committed is in the stage, which ends with the engine. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.ctx.signal.removeEventListener('abort', this.#interrupt);
    this.#stage.close();
    await this.work.engine.close();
  }

  abort(): Promise<void> {
    return this.close();
  }

  async translate(thrown: unknown): Promise<unknown> {
    this.ctx.signal.throwIfAborted();
    const misfit = isMisfit(thrown) ? await this.#stage.misfit().catch(() => null) : null;
    return misfit ?? duckDbError(thrown, this.work.place);
  }

  readonly #interrupt = () => {
    if (!this.#closed) this.work.engine.connection.interrupt();
  };
}

const freshName = ({ table, connection_id, stream_id, stream_run_id, fence }: Target) =>
  `${table}__new_${shortHash(connection_id, stream_id, stream_run_id, fence)}`;

/** Rolls back whatever `work` throws. */
export async function inTransaction<Result>(
  connection: Engine['connection'],
  work: () => Promise<Result>,
): Promise<Result> {
  await execute(connection, 'BEGIN');
  try {
    const result = await work();
    await execute(connection, 'COMMIT');
    return result;
  } catch (error) {
    await execute(connection, 'ROLLBACK').catch(() => {});
    throw error;
  }
}
