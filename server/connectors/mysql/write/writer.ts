import type {
  Batch,
  Cell,
  CommittedState,
  ConnectorContext,
  RowChange,
  StreamState,
  WriteCounts,
  Writer,
} from '../../contract/connector.ts';
import { ConnectorError } from '../../contract/errors.ts';
import { rowsToStage } from '../../kits/sql/staged-changes.ts';
import { RejectCount } from '../../kits/sql/rejects.ts';
import { type Load, loadOf } from './load.ts';
import { MysqlRejects } from './rejects.ts';
import { RowLoader } from './row-loader.ts';
import { MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlDestinationConfig } from '../connection/settings.ts';
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
  readonly #rejects: MysqlRejects | null;
  #counts: WriteCounts;
  #prepared = false;
  /** Rows that were taken without being loaded, less those loaded to be deleted. */
  #uncopied = 0;
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
    const { change } = this.#load;
    const columns = [...target.typed, ...(change ? [{ name: change, type: 'text', shape: 'text' as const }] : [])];
    this.#loader = new RowLoader(session, { columns, localInfile, table: target.relation });
    const count = state.counts.rows_rejected ?? 0;
    const rejected = target.rejects ? new RejectCount(target, { ...target.rejects, count }) : null;
    this.#rejects = rejected && new MysqlRejects({ session, target }, rejected, this.#loader, this.#load.present);
  }

  async write(batch: Batch): Promise<void> {
    await this.#guard(async () => {
      if (!this.#prepared) await this.#prepare();
      if (!this.#load.change) return this.#add(batch.rows);
      if (batch.changes) return this.#writeChanges(batch.rows, batch.changes);
      for (const row of batch.rows) row.push(null);
      return this.#add(batch.rows);
    });
  }

  #add(rows: Cell[][]): Promise<void> {
    return this.#rejects ? this.#rejects.add(rows) : this.#loader.add(rows);
  }

  /** A truncate takes the rows before it back. */
  async #writeChanges(rows: Cell[][], changes: readonly RowChange[]): Promise<void> {
    const from = changes.findLastIndex(({ operation }) => operation === 'truncate') + 1;
    if (from > 0) {
      await this.#loader.flush();
      await this.#load.truncate!();
    }
    const { columns, primary_key } = this.work.target;
    const key = primary_key.map((name) => columns.findIndex((column) => column.name === name));
    const kept = rowsToStage(rows.slice(from), changes.slice(from), { key, noted: this.#load.changes!() });
    if (kept.rows.length > 0) await this.#add(kept.rows);
    this.#uncopied += kept.uncopied;
  }

  async checkpoint(state: StreamState): Promise<WriteCounts> {
    if (!this.#load.incremental) return this.#counts;
    return this.#guard(() => this.#commit(state, false));
  }

  async finish(state: StreamState | null): Promise<WriteCounts> {
    const counts = await this.#guard(async () => {
      // Also a stream without rows makes, or empties, its table.
      if (!this.#prepared) await this.#prepare();
      const committed = await this.#commit(state, true);
      this.#rejects?.rejected.warn(this.ctx, this.work.target.schema);
      return committed;
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
    await this.#rejects?.prepare();
    await this.session.query('start transaction');
  }

  async #commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const counts = { ...this.#counts };
    let pending = null;
    if (this.#prepared) {
      await this.#loader.flush();
      counts.rows_loaded += this.#loader.rows + this.#uncopied;
      counts.bytes_loaded += this.#loader.bytes;
      const completed = await this.#load.complete(this.#rejects?.rejects ?? null);
      counts.rows_loaded -= completed.rejected ?? 0;
      counts.rows_updated += completed.updated;
      counts.rows_deleted += completed.deleted ?? 0;
      pending = completed.pending;
    } else await this.session.query('start transaction');
    if (this.#rejects) {
      counts.rows_rejected = this.#rejects.rejected.count;
      if (this.#prepared) await this.#rejects.commit();
    }
    await this.work.state.record({ state, counts, finished, pending });
    this.#done = finished;
    await this.session.query('commit', { slow: true });
    [this.#counts, this.#prepared, this.#uncopied] = [counts, false, 0];
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
