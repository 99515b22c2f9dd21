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
} from '../define.ts';
import { ConnectorError } from '../errors.ts';
import { changeCell } from '../latest-changes.ts';
import { UPSERT } from '../row-changes.ts';
import type { CopyIn } from './copy-in.ts';
import { encodeCopyText } from './copy-text.ts';
import { type Load, loadOf } from './load.ts';
import type { PgSession } from './session.ts';
import type { PostgresDestinationConfig } from './settings.ts';
import { columnList } from './sql.ts';
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
  #deletes = 0;
  #prepared: Awaited<ReturnType<Load['prepare']>> | null = null;
  #warned = false;

  constructor(
    private readonly ctx: ConnectorContext<PostgresDestinationConfig>,
    private readonly session: PgSession,
    private readonly work: { target: Target; state: StateRow },
  ) {
    this.committed = work.state.committed;
    this.byteFormats = acceptedFormats(work.target);
    this.#counts = work.state.counts;
    this.#load = loadOf(work.target);
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
    this.#copy ??= await this.#begin('');
    await this.#copy.write(Buffer.from(encodeCopyText(rows, this.#warnOfNul)));
  }

  /** A truncate takes the rows before it back. */
  async #writeChanges(rows: Cell[][], changes: readonly RowChange[]): Promise<void> {
    if (!this.#prepared) await this.#prepare();
    const noted = this.#load.changes!();
    let [from, deletes] = [0, 0];
    for (const [index, row] of rows.entries()) {
      const change = changes[index] ?? UPSERT;
      if (change.operation === 'truncate') {
        await this.#endCopy();
        await this.#load.truncate!(this.session);
        [from, deletes] = [index + 1, 0];
        continue;
      }
      noted.note(change);
      if (change.operation === 'delete') deletes++;
      row.push(changeCell(change));
    }
    this.#deletes += deletes;
    if (from < rows.length) await this.#writeRows(from > 0 ? rows.slice(from) : rows, true);
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
      return this.#commit(state, true);
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
    const options = [format, freeze && 'freeze'].filter(Boolean).join(', ');
    const names = this.work.target.columns.map(({ name }) => name);
    const columns = columnList(this.#marked ? [...names, this.#load.change!] : names);
    return this.session.copyIn(`copy ${into} (${columns}) from stdin${options && ` (${options})`}`);
  }

  async #commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const counts = { ...this.#counts };
    await this.#endCopy();
    counts.rows_loaded += this.#copied.rows - this.#deletes;
    counts.bytes_loaded += this.#copied.bytes;
    if (this.#prepared) {
      const { updated, deleted } = await this.#load.complete(this.session);
      counts.rows_updated += updated;
      counts.rows_deleted += deleted;
    } else await this.session.query('begin');
    await this.work.state.record({ state, counts, finished });
    await this.session.query('commit', [], { slow: true });
    [this.#prepared, this.#copied, this.#deletes, this.#counts] = [null, { rows: 0, bytes: 0 }, 0, counts];
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
