import { freeBytes } from '../../../platform/memory/free-bytes.ts';
import type { ByteStream, Cell, ChangeLines, ConnectorContext } from '../../contract/connector.ts';
import { decodeCopyText, encodeCopyText } from '../../cells/copy-text.ts';
import { DataError } from '../../contract/errors.ts';
import { LINE_FEED } from '../../kits/sql/copy-lines.ts';
import type { Merged } from '../../kits/sql/merge/merge.ts';
import { type PendingTable, pendingState } from '../../kits/sql/publish/pending-table.ts';
import type { RejectCount, Rejects } from '../../kits/sql/rejects.ts';
import type { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import type { StateRow } from '../../kits/sql/state-row.ts';
import type { Loaded } from '../../kits/sql/writer.ts';
import type { CopyIn } from '../connection/copy-in.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { columnList } from '../connection/sql.ts';
import { WAITING } from '../connection/waiting.ts';
import type { BesideTable } from './beside-table.ts';
import { type DirectMerge, directMerge, HeldRows, MAX_HELD_ROWS } from './held-rows.ts';
import { changesOf, type Completed, type Load, loadOf } from './load.ts';
import { LIMITS, type LoadTransaction } from './load-transaction.ts';
import type { OneMerged } from './merge/one-merge.ts';
import type { TurnLoad } from './load-turns.ts';
import { ahead, isWaitedFor, undoAhead } from './merge/merge-ahead.ts';
import { ParallelCopy, type Sharing } from './parallel-copy.ts';
import { discardOwn } from './pending-table.ts';
import { rejectsOf } from './rejects.ts';
import { isCommitted } from './seen-commit.ts';
import type { PgTarget } from './target.ts';

type Context = ConnectorContext<PostgresDestinationConfig>;

export interface LoadWork {
  target: PgTarget;
  state: StateRow;
  rejected: RejectCount | null;
}

/** The server takes some 20 ms to delete so many bytes. */
const SLOWLY_DELETED = 64 << 20;

const NOTHING_MERGED: Merged = { updated: 0, deleted: 0 };

/** The savepoint to which the merge of a part can be undone. */
const BEFORE_PART = 'before_part';

/** Rows by COPY, in the transaction that `prepare` begins. */
export class CopyLoad implements TurnLoad {
  /** Rows since the last commit while they are few; null: they are sent as they come. */
  held: HeldRows | null = null;
  private readonly session: PgSession;
  readonly #load: Load;
  readonly #rejects: Rejects | null;
  #into = { into: '', freeze: false };
  #copy: ParallelCopy | null = null;
  /** A table that the transaction alone does not remove may be there. */
  #shared = false;
  /** The rows of the COPY end in what happened to them. */
  #marked = false;
  /** In the open transaction, without those of `#copy`. */
  #copied = { rows: 0, bytes: 0 };
  /** In the open transaction, by `mergePart`. */
  #merged = NOTHING_MERGED;
  /** What the commit finds in place. */
  #ahead: Completed | null = null;
  /** What is staged waits for the commit. */
  #waits = false;
  #warned = false;
  /** The server may not have answered the last commit yet. */
  #deletes = false;

  constructor(
    private readonly ctx: Context,
    private readonly transaction: LoadTransaction,
    private readonly work: LoadWork,
  ) {
    const { target, rejected } = work;
    const { session } = transaction;
    this.session = session;
    this.#load = loadOf(target);
    const present = this.#load.present?.bind(null, session);
    this.#rejects = rejected && rejectsOf({ session, target, rejected }, { copy: this.#copyAtOnce, present });
  }

  get incremental(): boolean {
    return this.#load.incremental;
  }

  async prepare(): Promise<void> {
    if (!this.transaction.common || !this.#load.isDirect?.()) return this.#prepareTable();
    this.#load.stage!.changes = null;
    this.held = new HeldRows(this.work.target, this.transaction.held, this.#warnOfNul);
  }

  async #prepareTable(): Promise<void> {
    this.transaction.begin();
    this.#into = await this.#load.prepare(this.session);
  }

  async stageHeld(): Promise<void> {
    const { held } = this;
    if (!held) return;
    const rows = [...held.rows];
    const { changes } = this.#load.stage!;
    this.forgetHeld();
    await this.#prepareTable();
    this.#load.stage!.changes = changes;
    if (rows.length > 0) await this.add(rows, { marked: true });
  }

  forgetHeld(): void {
    this.held?.clear();
    this.held = null;
  }

  direct(): DirectMerge | null {
    const { held } = this;
    return held && held.rows.length > 0 ? directMerge(this.work.target, this.#load.stage!, held) : null;
  }

  async add(rows: Cell[][], { marked }: { marked: boolean }): Promise<void> {
    if (this.held?.take(rows, marked)) return;
    await this.stageHeld();
    if (this.#copy && this.#marked !== marked) await this.endCopy();
    this.#marked = marked;
    if (this.#rejects) return this.#count(await this.#rejects.load(rows));
    const lines = encodeCopyText(rows, this.#warnOfNul);
    this.#copy ??= this.#copyFrom(false);
    await this.#copy.write(lines, lines.length);
  }

  /** Changes that are encoded as a COPY into the stage has them. */
  async addLines({ bytes, rows, deletes }: ChangeLines): Promise<void> {
    this.changes().deletes ||= deletes > 0;
    if (this.held) {
      if (rows <= MAX_HELD_ROWS && this.held.take(decodeCopyText(bytes.toString('utf8')), true)) return;
      await this.stageHeld();
    }
    if (this.#copy && !this.#marked) await this.endCopy();
    this.#marked = true;
    this.#copy ??= this.#copyFrom(false);
    await this.#copy.write(bytes, bytes.length, () => freeBytes(bytes));
  }

  async reject(row: Cell[], error: DataError, isDelete: boolean): Promise<void> {
    await this.stageHeld();
    await this.#rejects!.refuse(row, error, isDelete);
  }

  async pipe(stream: ByteStream): Promise<void> {
    const binary = stream.format === 'pgcopy-binary';
    this.#copy = this.#copyFrom(binary, stream.computed ? WAITING.computed_share : WAITING.share);
    for await (const piece of stream.chunks) {
      const rows_end = binary ? (stream.rowsEnd?.() ?? 0) : piece.lastIndexOf(LINE_FEED) + 1;
      await this.#copy.write(piece, rows_end, () => stream.reuse?.(piece));
    }
  }

  changes(): StagedChanges {
    return changesOf(this.#load.stage!);
  }

  async truncate(): Promise<void> {
    if (this.#load.isFirst) return;
    this.held?.clear();
    await this.stageHeld();
    await this.endCopy();
    await this.session.query(`truncate ${this.#load.stage!.relation}`);
    this.changes().truncate();
  }

  /**
   * Merges what is staged before the rest of its transaction has arrived. The commit does it where rows that cannot be
   * merged are kept, and after a truncate, which would have the rows of later parts deleted first. After an error, too: a
   * rule may hold only once the rest has been merged, as when two rows exchange a unique value.
   */
  async mergePart(): Promise<void> {
    const { stage, isFirst } = this.#load;
    if (this.held || this.#rejects || this.#waits || isFirst) return;
    if (!stage?.changes || stage.changes.truncated || stage.complete) return;
    await this.endCopy();
    this.transaction.endStaging();
    await this.session.query(`savepoint ${BEFORE_PART}`);
    try {
      const { updated, deleted } = await this.#load.complete(this.session, null);
      await this.session.query(`truncate ${stage.relation}; release savepoint ${BEFORE_PART}`);
      this.#merged = { updated: this.#merged.updated + updated, deleted: this.#merged.deleted + deleted };
      stage.changes = null;
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      this.#waits = true;
      await this.session.query(`rollback to savepoint ${BEFORE_PART}; release savepoint ${BEFORE_PART}`);
    }
  }

  /**
   * Undoes a merge that leaves a row of the table as it is: it holds no lock on it, so the commit before may have changed it,
   * or change it later.
   */
  async completeAhead(): Promise<boolean> {
    await this.endCopy();
    const done = await ahead(this.session, async () =>
      (await this.mergeAhead())?.effective === this.#copied.rows ? this.#ahead : null,
    );
    if (!done) this.forgetAhead();
    return done !== null;
  }

  /** Within `ahead`. */
  async mergeAhead(): Promise<OneMerged | null> {
    const merged = (await this.#load.mergeAhead?.(this.session)) ?? null;
    this.#ahead = merged && { updated: merged.updated, deleted: merged.deleted };
    return merged;
  }

  forgetAhead(): void {
    this.#ahead = null;
  }

  isWaitedFor(): Promise<boolean> {
    return isWaitedFor(this.session);
  }

  async undoAhead(): Promise<void> {
    this.forgetAhead();
    await undoAhead(this.session);
  }

  async commit(record: (loaded: Loaded, session: PgSession) => Promise<void>, prepared: boolean): Promise<void> {
    await this.stageHeld();
    await this.endCopy();
    this.transaction.endStaging();
    const done: Partial<Completed> =
      this.#ahead ?? (prepared ? await this.#load.complete(this.session, this.#rejects) : {});
    this.transaction.begin();
    const updated = (done.updated ?? 0) + this.#merged.updated;
    const deleted = (done.deleted ?? 0) + this.#merged.deleted;
    await record({ ...this.#copied, ...done, updated, deleted }, this.session);
    if (!this.transaction.common) await this.#commitOwn(done.dropped ?? 0);
    [this.#shared, this.#waits, this.#merged, this.#ahead] = [false, false, NOTHING_MERGED, null];
    this.#copied = { rows: 0, bytes: 0 };
  }

  async #commitOwn(dropped: number): Promise<void> {
    this.#deletes = dropped >= SLOWLY_DELETED;
    if (this.#deletes) await this.transaction.commitSeen(isCommitted(this.ctx, this.work.target));
    else await this.transaction.commit();
  }

  async close(): Promise<void> {
    const closed = this.transaction.common ? null : this.session.close();
    if (!this.#deletes) await closed;
  }

  /** Open transactions end with their sessions, and what they do not hold is dropped. */
  async abort(): Promise<void> {
    await Promise.all([this.#copy?.close(), this.session.close(), this.#load.beside?.isCreated()]);
    if (this.#shared) await discardOwn(this.ctx, this.work.target);
    this.#shared = false;
  }

  translate(error: unknown): unknown {
    return this.session.translate(error);
  }

  /** With rejects, each batch is a COPY of its own. */
  readonly #copyAtOnce = async (rows: Cell[][]) => {
    const copy = this.#begin(this.session, []);
    await copy.write(encodeCopyText(rows, this.#warnOfNul));
    return { rows: await copy.end(), bytes: copy.bytes() };
  };

  async endCopy(): Promise<void> {
    if (!this.#copy) return;
    this.#count(await this.#copy.end());
    this.#copy = null;
  }

  #count({ rows, bytes }: { rows: number; bytes: number }): void {
    this.#copied.rows += rows;
    this.#copied.bytes += bytes;
  }

  #copyFrom(binary: boolean, waiting = WAITING.share): ParallelCopy {
    const format = binary ? ['format binary'] : [];
    const begin = (session: PgSession, shared: boolean) =>
      this.#begin(session, this.#into.freeze && !shared ? [...format, 'freeze'] : format);
    return new ParallelCopy(this.session, { binary, waiting, sharing: this.#sharing(), begin });
  }

  /** A row that cannot be loaded is looked for under savepoints of one session. */
  #sharing(): Sharing | null {
    const { ctx, transaction } = this;
    const { pending, beside } = this.#load;
    const { parallel_writes: limit } = ctx.config;
    if (this.#rejects || transaction.common || limit < 2 || !(pending || beside)) return null;
    return {
      limit,
      open: () => openHelper(ctx, async (session) => beside && this.#createBeside(session, beside)),
      ...(pending && { share: () => this.#share(pending) }),
      refused: (error) => {
        if (ctx.signal.aborted) return;
        ctx.log.warn('loading the table with fewer connections', { reason: String(error) });
      },
    };
  }

  async #share(pending: PendingTable): Promise<void> {
    const { transaction, work } = this;
    this.#shared = true;
    await work.state.note(pendingState(pending));
    await transaction.commit();
    transaction.begin();
  }

  async #createBeside(session: PgSession, beside: BesideTable): Promise<void> {
    this.#shared = true;
    await beside.create(session, this.work.state);
  }

  #begin(session: PgSession, options: readonly string[]): CopyIn {
    const names = columnList(this.work.target.columns.map(({ name }) => name));
    const columns = this.#marked ? `${names}, ${this.#load.stage!.change}` : names;
    const given = options.length > 0 ? ` (${options.join(', ')})` : '';
    const into = (session !== this.session && this.#load.beside?.relation) || this.#into.into;
    return session.copyIn(`copy ${into} (${columns}) from stdin${given}`);
  }

  readonly #warnOfNul = () => {
    if (this.#warned) return;
    this.#warned = true;
    this.ctx.warn(
      'nul_character_removed',
      `Texts for ${this.work.target.table} contained the character NUL, which PostgreSQL cannot store. It was removed`,
    );
  };
}

/** Copies beside the session of a writer. */
async function openHelper(ctx: Context, prepare: (session: PgSession) => Promise<void>): Promise<PgSession> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await prepare(session);
    await session.query(`begin; ${LIMITS}`);
    return session;
  } catch (error) {
    await session.close();
    throw error;
  }
}
