import type {
  Batch,
  ByteFormat,
  ByteStream,
  CommittedState,
  ConnectorContext,
  StreamState,
  WriteCounts,
  Writer,
} from '../define.ts';
import { ConnectorError } from '../errors.ts';
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
  #prepared = false;
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
      this.#copy ??= await this.#begin('');
      await this.#copy.write(Buffer.from(encodeCopyText(batch.rows, this.#warnOfNul)));
    });
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
    this.#prepared = true;
    return this.#load.prepare(this.session);
  }

  async #begin(format: string): Promise<CopyIn> {
    const { into, freeze } = await this.#prepare();
    const options = [format, freeze && 'freeze'].filter(Boolean).join(', ');
    const columns = columnList(this.work.target.columns.map(({ name }) => name));
    return this.session.copyIn(`copy ${into} (${columns}) from stdin${options && ` (${options})`}`);
  }

  async #commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const counts = { ...this.#counts };
    if (this.#copy) {
      counts.rows_loaded += await this.#copy.end();
      counts.bytes_loaded += this.#copy.bytes();
    }
    if (this.#prepared) {
      const { updated, deleted } = await this.#load.complete(this.session);
      counts.rows_updated += updated;
      counts.rows_deleted += deleted;
    } else await this.session.query('begin');
    await this.work.state.record({ state, counts, finished });
    await this.session.query('commit', [], { slow: true });
    [this.#copy, this.#prepared, this.#counts] = [null, false, counts];
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
