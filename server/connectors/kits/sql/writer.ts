import type {
  Batch,
  Cell,
  CommittedState,
  ConnectorContext,
  HeldPosition,
  RowChange,
  StreamState,
  WriteCounts,
  Writer,
} from '../../contract/connector.ts';
import { ConnectorError, type DataError } from '../../contract/errors.ts';
import { type ChangedValues, sumOfChanged, type ValueGate, warnOfChanged, withRow } from '../../cells/value-gate.ts';
import type { SqlSession } from './dialect.ts';
import type { Copied, RejectCount } from './rejects.ts';
import { rowsToStage, type StagedChanges } from './merge/staged-changes.ts';
import type { ExtraState, StateCommit, StateRow } from './state-row.ts';
import { isMerge, type Target } from './target.ts';

/** What a commit brought into place, since the one before it. */
export interface Loaded extends Copied {
  updated?: number;
  deleted?: number;
  /** Rows that were counted as copied and then rejected. */
  rejected?: number;
  /** By the database itself, beyond those that the gate changed. */
  changed?: ChangedValues;
  extra?: ExtraState;
}

/** How one database loads the rows of a stream. */
export interface RowLoad {
  /** Rows may become visible before the end of the stream. */
  readonly incremental: boolean;
  /** Called before the first rows after a commit, and by a commit without rows at the end of the stream. */
  prepare(): Promise<void>;
  /** @param marked each row ends in one more cell that says what happened to it (staged-changes.ts) */
  add(rows: Cell[][], batch: { marked: boolean; bytes: number }): Promise<void>;
  /** Keeps a row that cannot be loaded, where such rows are kept. @param isDelete it was to be deleted */
  reject(row: Cell[], error: DataError, isDelete: boolean): Promise<void>;
  /** The changes staged since `prepare`. Called only for merges, as `truncate` is. */
  changes(): StagedChanges;
  /** Forgets the rows staged since `prepare`, and removes those of the table. */
  truncate(): Promise<void>;
  /**
   * One transaction: brings the rows into place and lets `record` store the state with its fence.
   * @param prepared false: nothing was prepared, only the state is committed
   * @param record may be called several times; the last call counts. `session`: another one than that of the state
   */
  commit(
    record: (loaded: Loaded, session?: SqlSession) => Promise<void>,
    prepared: boolean,
    finished: boolean,
  ): Promise<void>;
  /** Ends the session. Everything that is not committed ends with it. */
  close(): Promise<void>;
  /** As `close`, after which nothing uncommitted may be left. */
  abort(): Promise<void>;
  /** Turns what the driver threw into a ConnectorError. */
  translate(error: unknown): unknown;
}

export interface WriterParts {
  ctx: Pick<ConnectorContext<unknown>, 'warn' | 'signal'>;
  target: Target;
  state: StateRow;
  /** Null: the first row that cannot be loaded is an error. */
  rejected: RejectCount | null;
  gate: ValueGate | null;
  load: RowLoad;
  /** Of another writer of the same stream, which takes turns with this one. */
  totals?: WrittenTotals;
}

/** What a stream run has committed, earlier attempts included. */
export type WrittenTotals = Pick<StateCommit, 'counts' | 'changed'> & { changed: ChangedValues };

/** A Writer over one database: counts, changes, checkpoints, the state and its fence. */
export class SqlWriter implements Writer {
  readonly committed: CommittedState | null;
  readonly held: HeldPosition;
  protected prepared = false;
  protected readonly totals: WrittenTotals;
  /** Rows that were taken without being staged, less those staged to be deleted. */
  #unstaged = 0;
  readonly #key: number[];

  constructor(protected readonly parts: WriterParts) {
    const { state, target } = parts;
    this.committed = state.committed;
    this.held = state.held;
    this.totals = parts.totals ?? { counts: state.counts, changed: state.changed };
    // An attempt that ended between this commit and its report.
    if (state.committed?.finished || state.committed?.ready) this.warn();
    this.#key = target.primary_key.map((name) => target.columns.findIndex((column) => column.name === name));
  }

  async write(batch: Batch): Promise<void> {
    await this.guard(async () => {
      await this.prepare();
      const { rows, changes, bytes } = this.parts.gate ? await this.#passed(batch, this.parts.gate) : batch;
      if (changes && isMerge(this.parts.target)) await this.#writeChanges(rows, changes, bytes);
      else if (rows.length > 0) await this.parts.load.add(rows, { marked: false, bytes });
    });
  }

  /** The rows that the table holds exactly. The others are kept, or end the run. */
  async #passed(batch: Batch, gate: ValueGate): Promise<Batch> {
    const { load, rejected, target } = this.parts;
    const refused = new Set<number>();
    const changes = isMerge(target) ? batch.changes : undefined;
    for (const [at, row] of batch.rows.entries()) {
      const error = gate.take(row, changes?.[at]);
      if (!error) continue;
      if (!rejected) throw withRow(error, gate.row);
      refused.add(at);
      await load.reject(row, error, batch.changes?.[at]?.operation === 'delete');
    }
    if (refused.size === 0) return batch;
    const isKept = (_: unknown, at: number) => !refused.has(at);
    return { ...batch, rows: batch.rows.filter(isKept), changes: batch.changes?.filter(isKept) };
  }

  async checkpoint(state: StreamState): Promise<WriteCounts> {
    if (!this.parts.load.incremental) return this.totals.counts;
    return this.guard(() => this.commit(state, false));
  }

  async finish(state: StreamState | null): Promise<WriteCounts> {
    const { load } = this.parts;
    const counts = await this.guard(async () => {
      // A stream without rows still creates, or empties, its table.
      await this.prepare();
      return this.commit(state, true);
    });
    this.warn();
    await load.close();
    return counts;
  }

  async abort(): Promise<void> {
    await this.parts.load.abort();
  }

  /** What the run is warned of at its end. */
  warn(): void {
    const { ctx, rejected, target } = this.parts;
    rejected?.warn(ctx, target.schema);
    warnOfChanged(target.table, this.totals.changed, (code, message) => ctx.warn(code, message));
  }

  /** See `#unstaged`. */
  protected countUnstaged(rows: number): void {
    this.#unstaged += rows;
  }

  protected async prepare(): Promise<void> {
    if (this.prepared) return;
    await this.parts.load.prepare();
    this.prepared = true;
  }

  protected async guard<Result>(work: () => Promise<Result>): Promise<Result> {
    this.parts.ctx.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      // A byte stream fails with an error of its source.
      throw error instanceof ConnectorError ? error : await this.parts.load.translate(error);
    }
  }

  /** Rows before a truncate are not loaded. */
  async #writeChanges(rows: Cell[][], changes: readonly RowChange[], bytes: number): Promise<void> {
    const { load } = this.parts;
    const from = changes.findLastIndex(({ operation }) => operation === 'truncate') + 1;
    if (from > 0) await load.truncate();
    const kept = rowsToStage(rows.slice(from), changes.slice(from), { key: this.#key, noted: load.changes() });
    if (kept.rows.length > 0) await load.add(kept.rows, { marked: true, bytes });
    this.countUnstaged(kept.unstaged);
  }

  protected async commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { load, state: row, target } = this.parts;
    const isDeferred = target.publish_with != null;
    const { prepared } = this;
    this.prepared = false;
    let { totals } = this;
    await load.commit(
      async (loaded, session) => {
        totals = this.totalsWith(loaded);
        await row.record({ state, ...totals, finished: finished && !isDeferred, extra: loaded.extra }, session);
      },
      prepared,
      finished,
    );
    this.confirm(totals);
    return totals.counts;
  }

  /** The totals once `loaded` is committed. */
  protected totalsWith({ rows, bytes, updated = 0, deleted = 0, rejected = 0, changed = {} }: Loaded): WrittenTotals {
    const before = this.totals.counts;
    const { gate, rejected: kept, state } = this.parts;
    return {
      counts: {
        ...before,
        rows_loaded: before.rows_loaded + rows + this.#unstaged - rejected,
        rows_updated: before.rows_updated + updated,
        rows_deleted: before.rows_deleted + deleted,
        bytes_loaded: before.bytes_loaded + bytes,
        ...(kept && { rows_rejected: kept.count }),
      },
      changed: [gate?.changed ?? {}, changed].reduce(sumOfChanged, state.changed),
    };
  }

  /** They are committed. */
  protected confirm(totals: WrittenTotals): void {
    this.parts.state.confirm();
    Object.assign(this.totals, totals);
    this.#unstaged = 0;
  }
}
