import type {
  Batch,
  ByteFormat,
  ByteStream,
  ConnectorContext,
  StreamState,
  WriteCounts,
} from '../../contract/connector.ts';
import type { ValueGate } from '../../cells/value-gate.ts';
import { gateOf } from '../../kits/sql/gate.ts';
import type { Merged } from '../../kits/sql/merge/merge.ts';
import { RejectCount } from '../../kits/sql/rejects.ts';
import type { StateCommit, StoredCommit } from '../../kits/sql/state-row.ts';
import { isMerge } from '../../kits/sql/target.ts';
import { SqlWriter, type WrittenTotals } from '../../kits/sql/writer.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { CopyLoad, type LoadWork } from './copy-load.ts';
import { postgres } from './dialect.ts';
import type { DirectMerge } from './held-rows.ts';
import { LIMITS, LoadTransaction } from './load-transaction.ts';
import { LoadTurns } from './load-turns.ts';
import { acceptedFormats } from './target.ts';

type Context = ConnectorContext<PostgresDestinationConfig>;

interface Work extends LoadWork {
  ctx: Context;
  gate: ValueGate | null;
  totals?: WrittenTotals;
}

/** Each commit is one transaction: COPY, what the mode does with the rows, the state with its fence. */
export class PgWriter extends SqlWriter {
  readonly byteFormats: ByteFormat[];
  readonly accepts_lines: boolean;
  readonly writes_while_committing: boolean;
  /** Rows of the next commit can be staged by another session while one is under way. */
  readonly takesTurns: boolean;

  static of(ctx: Context, transaction: LoadTransaction, { target, state }: Omit<LoadWork, 'rejected'>): PgWriter {
    const rejected = RejectCount.of(target, state.counts);
    return PgWriter.#by(transaction, { ctx, target, state, rejected, gate: gateOf(postgres, target) });
  }

  static #by(transaction: LoadTransaction, work: Work): PgWriter {
    const { ctx } = work;
    const loadBy = (own: LoadTransaction) => new CopyLoad(ctx, own, work);
    const load = new LoadTurns(loadBy(transaction), async () => {
      const session = await openBeside(ctx);
      return session && loadBy(new LoadTransaction(session));
    });
    return new PgWriter(load, work, transaction.common);
  }

  private constructor(
    private readonly turns: LoadTurns<CopyLoad>,
    private readonly work: Work,
    common: boolean,
  ) {
    super({ ...work, load: turns });
    const { ctx, target, rejected, gate } = work;
    // An error of a byte stream cannot be traced to a row, and the server would round what a column cannot hold.
    this.accepts_lines = !rejected && !gate?.needsCells;
    this.byteFormats = this.accepts_lines ? acceptedFormats(target) : [];
    // A table that the first session creates is not visible to another one.
    const isMerged = isMerge(target) && target.existing !== null && turns.incremental;
    const canOverlap = isMerged && ctx.config.parallel_writes > 1;
    this.writes_while_committing = canOverlap && this.accepts_lines && !common;
    // What is rejected or changed counts once it is written, so the commit before would store it.
    this.takesTurns = canOverlap && !rejected && target.inexact_values !== 'allow';
  }

  /** A writer of the same stream by another session. Their commits follow one another. */
  beside(transaction: LoadTransaction): PgWriter {
    return PgWriter.#by(transaction, { ...this.work, totals: this.totals });
  }

  private get copies(): CopyLoad {
    return this.turns.current;
  }

  override async write(batch: Batch): Promise<void> {
    const { lines } = batch;
    if (!lines) return super.write(batch);
    await this.guard(async () => {
      await this.prepare();
      await this.copies.addLines(lines);
      this.countUnstaged(-lines.deletes);
    });
  }

  /** Ends a COPY, so that the session can be used otherwise. */
  async flush(): Promise<void> {
    await this.guard(() => this.copies.endCopy());
  }

  /** Nothing was sent since the last commit: the rows, if there are any, wait for a direct merge. */
  get isHeld(): boolean {
    return !this.prepared || this.copies.held !== null;
  }

  get claim(): Pick<StoredCommit, 'stream_id' | 'fence'> {
    return this.parts.target;
  }

  /** The commit of this stream in the transaction that it shares. */
  commitStaged(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    return finished ? this.guard(() => this.commit(state, true)) : this.checkpoint(state!);
  }

  /** Creates the table of a stream without rows. */
  async ready(): Promise<void> {
    await this.guard(() => this.prepare());
  }

  /** Sends the rows that are held to the stage. */
  async stage(): Promise<void> {
    await this.guard(() => this.copies.stageHeld());
  }

  /** Merges rows that are staged, in the open transaction. */
  async mergePart(): Promise<void> {
    await this.guard(() => this.copies.mergePart());
  }

  /** Merges what is staged beside the commit before it, within `ahead`. @returns false: it has to wait for that commit */
  async mergeAhead(): Promise<boolean> {
    return (await this.copies.mergeAhead()) !== null;
  }

  forgetAhead(): void {
    this.copies.forgetAhead();
  }

  /** Merges the rows that are held; null: there are none. */
  direct(): DirectMerge | null {
    return this.copies.direct();
  }

  /** What a commit of the rows that are held stores, and the totals after it. */
  next(
    merged: Merged,
    commit: Pick<StateCommit, 'state' | 'finished'>,
  ): { stored: StoredCommit; totals: WrittenTotals } {
    const { rows = [], bytes = 0 } = this.copies.held ?? {};
    const totals = this.totalsWith({ rows: rows.length, bytes, ...merged });
    return { totals, stored: this.parts.state.next({ ...commit, ...totals }) };
  }

  /** The rows that were held are committed. */
  committedHeld(totals: WrittenTotals): void {
    this.copies.forgetHeld();
    this.prepared = false;
    this.confirm(totals);
  }

  async pipe(stream: ByteStream): Promise<void> {
    await this.guard(async () => {
      await this.prepare();
      await this.copies.pipe(stream);
      // A commit follows.
      if (this.writes_while_committing) this.turns.completeAhead();
    });
  }
}

/** For transactions beside those of a writer's session. Null: the server accepts no other session. */
export async function openBeside(ctx: Context): Promise<PgSession | null> {
  try {
    const session = await PgSession.open(ctx, { phase: 'run' });
    session.ahead(LIMITS);
    return session;
  } catch (error) {
    if (ctx.signal.aborted) throw error;
    ctx.log.warn('merging over one connection', { reason: String(error) });
    return null;
  }
}
