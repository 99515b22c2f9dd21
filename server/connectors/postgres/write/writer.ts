import type {
  Batch,
  ByteFormat,
  ByteStream,
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
import { RejectCount, type Rejects } from '../../kits/sql/rejects.ts';
import type { CopyIn } from './copy-in.ts';
import { encodeCopyText } from '../../cells/copy-text.ts';
import { type Load, loadOf } from './load.ts';
import { rejectsOf } from './rejects.ts';
import type { PgSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { columnList } from '../connection/sql.ts';
import type { StateRow } from './state-table.ts';
import { acceptedFormats, type Target } from './target.ts';

/** Each checkpoint is one transaction: COPY, what the mode makes of the rows, the state with its fence, COMMIT. */
export class PgWriter implements Writer {
  readonly committed: CommittedState | null;
  readonly byteFormats: ByteFormat[];
  readonly #load: Load;
  #counts: WriteCounts;
  #copy: CopyIn | null = null;
  /** The rows of the COPY end in what happened to them. */
  #marked = false;
  /** Of the open transaction, not counting `#copy`. */
  #copied = { rows: 0, bytes: 0 };
  /** Rows that were taken without being copied, less those copied to be deleted. */
  #uncopied = 0;
  #prepared: Awaited<ReturnType<Load['prepare']>> | null = null;
  #warned = false;
  readonly #rejects: Rejects | null;

  constructor(
    private readonly ctx: ConnectorContext<PostgresDestinationConfig>,
    private readonly session: PgSession,
    private readonly work: { target: Target; state: StateRow },
  ) {
    this.committed = work.state.committed;
    const { rejects } = work.target;
    // Of bytes nobody could tell which row was bad.
    this.byteFormats = rejects ? [] : acceptedFormats(work.target);
    this.#counts = work.state.counts;
    const count = this.#counts.rows_rejected ?? 0;
    const rejected = rejects ? new RejectCount(work.target, { ...rejects, count }) : null;
    this.#load = loadOf(work.target);
    const present = this.#load.present?.bind(null, session);
    this.#rejects =
      rejected && rejectsOf({ session, target: work.target, rejected }, { copy: this.#copyAtOnce, present });
  }

  async write(batch: Batch): Promise<void> {
    await this.#guard(async () => {
      if (batch.changes && this.#load.change) await this.#writeChanges(batch.rows, batch.changes);
      else await this.#writeRows(batch.rows, false);
    });
  }

  async #writeRows(rows: Cell[][], marked: boolean): Promise<void> {
    if (this.#copy && this.#marked !== marked) await this.#endCopy();
    this.#marked = marked;
    if (this.#rejects) return this.#writeChecked(rows, this.#rejects);
    this.#copy ??= await this.#begin('');
    await this.#copy.write(Buffer.from(encodeCopyText(rows, this.#warnOfNul)));
  }

  /** Each batch is a COPY of its own. */
  async #writeChecked(rows: Cell[][], rejects: Rejects): Promise<void> {
    if (!this.#prepared) await this.#prepare();
    const copied = await rejects.load(rows);
    this.#copied.rows += copied.rows;
    this.#copied.bytes += copied.bytes;
  }

  readonly #copyAtOnce = async (rows: Cell[][]) => {
    const copy = await this.#begin('');
    await copy.write(Buffer.from(encodeCopyText(rows, this.#warnOfNul)));
    return { rows: await copy.end(), bytes: copy.bytes() };
  };

  /** A truncate takes the rows before it back. */
  async #writeChanges(rows: Cell[][], changes: readonly RowChange[]): Promise<void> {
    if (!this.#prepared) await this.#prepare();
    const from = changes.findLastIndex(({ operation }) => operation === 'truncate') + 1;
    if (from > 0) {
      await this.#endCopy();
      await this.#load.truncate!(this.session);
    }
    const { columns, primary_key } = this.work.target;
    const key = primary_key.map((name) => columns.findIndex((column) => column.name === name));
    const kept = rowsToStage(rows.slice(from), changes.slice(from), { key, noted: this.#load.changes!() });
    if (kept.rows.length > 0) await this.#writeRows(kept.rows, true);
    this.#uncopied += kept.uncopied;
  }

  async #endCopy(): Promise<void> {
    if (!this.#copy) return;
    this.#copied.rows += await this.#copy.end();
    this.#copied.bytes += this.#copy.bytes();
    this.#copy = null;
  }

  async pipe(stream: ByteStream): Promise<void> {
    await this.#guard(async () => {
      this.#copy = await this.#begin(stream.format === 'pgcopy-binary' ? 'format binary' : '');
      for await (const piece of stream.chunks) await this.#copy.write(piece);
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
      const committed = await this.#commit(state, true);
      this.#rejects?.rejected.warn(this.ctx, this.work.target.schema);
      return committed;
    });
    await this.session.close();
    return counts;
  }

  /** The open transaction, the only place of what is not committed, ends with the session. */
  async abort(): Promise<void> {
    await this.session.close();
  }

  async #prepare() {
    await this.session.query('begin');
    this.#prepared = await this.#load.prepare(this.session);
    return this.#prepared;
  }

  async #begin(format: string): Promise<CopyIn> {
    const { into, freeze } = this.#prepared ?? (await this.#prepare());
    // A savepoint is no place to freeze rows in.
    const options = [format, freeze && !this.#rejects && 'freeze'].filter(Boolean).join(', ');
    const names = this.work.target.columns.map(({ name }) => name);
    const columns = columnList(this.#marked ? [...names, this.#load.change!] : names);
    return this.session.copyIn(`copy ${into} (${columns}) from stdin${options && ` (${options})`}`);
  }

  async #commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const counts = { ...this.#counts };
    await this.#endCopy();
    counts.rows_loaded += this.#copied.rows + this.#uncopied;
    counts.bytes_loaded += this.#copied.bytes;
    if (this.#prepared) {
      const { updated, deleted, rejected = 0 } = await this.#load.complete(this.session, this.#rejects);
      counts.rows_loaded -= rejected;
      counts.rows_updated += updated;
      counts.rows_deleted += deleted;
    } else await this.session.query('begin');
    if (this.#rejects) counts.rows_rejected = this.#rejects.rejected.count;
    await this.work.state.record({ state, counts, finished });
    await this.session.query('commit', [], { slow: true });
    [this.#prepared, this.#copied, this.#uncopied, this.#counts] = [null, { rows: 0, bytes: 0 }, 0, counts];
    return counts;
  }

  async #guard<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      // Errors of the stream being piped are the source's own and pass as they are.
      throw error instanceof ConnectorError ? error : this.session.translate(error);
    }
  }

  readonly #warnOfNul = () => {
    if (this.#warned) return;
    this.#warned = true;
    this.ctx.warn(
      'nul_character_removed',
      `Texts for ${this.work.target.table} held the character NUL, which PostgreSQL cannot store: it was left out`,
    );
  };
}
