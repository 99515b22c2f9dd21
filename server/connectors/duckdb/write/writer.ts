import type {
  Batch,
  CommittedState,
  ConnectorContext,
  StreamState,
  WriteCounts,
  Writer,
} from '../../contract/connector.ts';
import { ConnectorError } from '../../contract/errors.ts';
import { RejectCount } from '../../kits/sql/rejects.ts';
import { type Engine, execute } from '../connection/engine.ts';
import { duckDbError, isMisfit, type Place } from '../connection/failures.ts';
import { writing } from '../connection/file-access.ts';
import { loadStage } from './load.ts';
import { DuckDbRejects } from './rejects.ts';
import type { DuckDbDestinationConfig } from '../connection/settings.ts';
import { isMerge, Stage } from './stage.ts';
import type { StateRow } from './state-table.ts';
import type { Target } from './tables.ts';

/**
 * Rows are gathered aside. Each commit opens the file, brings them in and records the state in one transaction, and
 * lets go of the file: others may have it between the commits, and a crash leaves it as the last commit did.
 */
export class DuckDbWriter implements Writer {
  readonly committed: CommittedState | null;
  readonly #stage: Stage;
  readonly #rejects: DuckDbRejects | null;
  #counts: WriteCounts;
  #closed = false;

  constructor(
    private readonly ctx: ConnectorContext<DuckDbDestinationConfig>,
    private readonly work: { engine: Engine; place: Place; target: Target; state: StateRow },
  ) {
    this.committed = work.state.committed;
    this.#counts = work.state.counts;
    const { target, engine } = work;
    this.#stage = new Stage(engine.connection, target);
    const count = this.#counts.rows_rejected ?? 0;
    const rejected = target.rejects ? new RejectCount(target, { ...target.rejects, count }) : null;
    this.#rejects =
      rejected && new DuckDbRejects({ connection: engine.connection, target, stage: this.#stage }, rejected);
    ctx.signal.addEventListener('abort', this.#interrupt, { once: true });
  }

  async write(batch: Batch): Promise<void> {
    const { rows, changes, bytes } = batch;
    await this.#guard(() =>
      changes && isMerge(this.work.target)
        ? this.#stage.addChanges(rows, changes, bytes)
        : this.#stage.add(rows, bytes),
    );
  }

  /** The rows of an overwrite stay aside until the end: a part of them is nothing to go on from. So with a complete read and a window. */
  async checkpoint(state: StreamState): Promise<WriteCounts> {
    const { mode, complete, replace_window } = this.work.target;
    if (mode === 'overwrite' || replace_window || (mode === 'soft_delete' && complete)) return this.#counts;
    return this.#guard(() => this.#commit(state, false));
  }

  async finish(state: StreamState | null): Promise<WriteCounts> {
    const counts = await this.#guard(() => this.#commit(state, true));
    this.#rejects?.rejected.warn(this.ctx, this.work.target.schema);
    await this.abort();
    return counts;
  }

  /** The stage is all that is not committed, and ends with the engine. */
  async abort(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.ctx.signal.removeEventListener('abort', this.#interrupt);
    this.#stage.close();
    await this.work.engine.close();
  }

  async #commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { engine } = this.work;
    this.#stage.close();
    await this.#rejects?.takeMisfits();
    this.#counts = await writing(this.ctx, { engine, ...this.work.place }, () => this.#bringIn(state, finished));
    this.work.state.settle();
    await this.#stage.clear();
    await this.#rejects?.clear();
    return this.#counts;
  }

  /** Again without each row that breaks a rule of the table, where such rows are kept. */
  async #bringIn(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { engine, target } = this.work;
    const load = () => loadStage(engine.connection, target, this.#stage);
    while (true) {
      try {
        return await inTransaction(engine.connection, () => this.#load(state, finished));
      } catch (error) {
        if (!(await this.#rejects?.takeViolation(error, load))) throw error;
      }
    }
  }

  async #load(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { engine, target } = this.work;
    const counts = {
      ...this.#counts,
      rows_loaded: this.#counts.rows_loaded + this.#stage.loaded,
      bytes_loaded: this.#counts.bytes_loaded + this.#stage.bytes,
    };
    if (this.#rejects) counts.rows_rejected = this.#rejects.rejected.count;
    // First the fence: an attempt that was overtaken is to be told so and not what is wrong with its rows.
    await this.work.state.record({ state, counts, finished });
    const { updated, deleted } = await loadStage(engine.connection, target, this.#stage);
    await this.#rejects?.commit();
    counts.rows_updated += updated;
    counts.rows_deleted += deleted;
    if (updated + deleted > 0) await this.work.state.record({ state, counts, finished });
    return counts;
  }

  async #guard<Result>(work: () => Promise<Result>): Promise<Result> {
    this.ctx.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      this.ctx.signal.throwIfAborted();
      if (error instanceof ConnectorError) throw error;
      const misfit = isMisfit(error) ? await this.#stage.misfit().catch(() => null) : null;
      throw misfit ?? duckDbError(error, this.work.place);
    }
  }

  readonly #interrupt = () => {
    if (!this.#closed) this.work.engine.connection.interrupt();
  };
}

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
