import type { Batch, CommittedState, ConnectorContext, StreamState, WriteCounts, Writer } from '../define.ts';
import { ConnectorError } from '../errors.ts';
import { type Load, loadOf } from './load.ts';
import { RowLoader } from './row-loader.ts';
import { MysqlSession, withSession } from './session.ts';
import type { MysqlDestinationConfig } from './settings.ts';
import type { StateRow } from './state-table.ts';
import type { Target } from './target.ts';

/** What is left to be cleared away after an abort must not hold anybody up. */
const CLEAN_UP_MS = 5_000;

/**
 * Each checkpoint is one transaction: the rows, what the mode makes of them, the state with its fence, COMMIT. Tables
 * are made before it and swapped after it (load.ts), since both would commit it.
 */
export class MysqlWriter implements Writer {
  readonly committed: CommittedState | null;
  readonly #load: Load;
  readonly #loader: RowLoader;
  #counts: WriteCounts;
  #prepared = false;
  #done = false;

  constructor(
    private readonly ctx: ConnectorContext<MysqlDestinationConfig>,
    private readonly session: MysqlSession,
    private readonly work: { target: Target; state: StateRow; localInfile: boolean },
  ) {
    const { target, state, localInfile } = work;
    this.committed = state.committed;
    this.#counts = state.counts;
    this.#load = loadOf({ session, target, state });
    this.#loader = new RowLoader(session, { columns: target.typed, localInfile, table: target.relation });
  }

  async write(batch: Batch): Promise<void> {
    await this.#guard(async () => {
      if (!this.#prepared) await this.#prepare();
      await this.#loader.add(batch.rows);
    });
  }

  async checkpoint(state: StreamState): Promise<WriteCounts> {
    if (!this.#load.incremental) return this.#counts;
    return this.#guard(() => this.#commit(state, false));
  }

  async finish(state: StreamState | null): Promise<WriteCounts> {
    const counts = await this.#guard(async () => {
      // Also a stream without rows makes, or empties, its table.
      if (!this.#prepared) await this.#prepare();
      return this.#commit(state, true);
    });
    await this.session.close();
    return counts;
  }

  /** The open transaction ends with the session; what no transaction holds is dropped. */
  async abort(): Promise<void> {
    await this.session.close();
    const { leftover } = this.#load;
    if (!leftover || !this.#prepared || this.#done) return;
    const signal = AbortSignal.timeout(CLEAN_UP_MS);
    const drop = (session: MysqlSession) => session.query(`drop table if exists ${leftover}`);
    // Whoever opens the stream next would do it, too.
    await withSession({ ...this.ctx, signal }, { phase: 'run' }, drop).catch(() => {});
  }

  async #prepare() {
    this.#prepared = true;
    this.#loader.restart(await this.#load.prepare());
    await this.session.query('start transaction');
  }

  async #commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const counts = { ...this.#counts };
    let pending = null;
    if (this.#prepared) {
      await this.#loader.flush();
      counts.rows_loaded += this.#loader.rows;
      counts.bytes_loaded += this.#loader.bytes;
      const completed = await this.#load.complete();
      counts.rows_updated += completed.updated;
      pending = completed.pending;
    } else await this.session.query('start transaction');
    await this.work.state.record({ state, counts, finished, pending });
    this.#done = finished;
    await this.session.query('commit', { slow: true });
    this.#counts = counts;
    this.#prepared = false;
    await this.#load.settle();
    return counts;
  }

  async #guard<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof ConnectorError ? error : this.session.translate(error);
    }
  }
}
