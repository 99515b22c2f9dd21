import type { ByteFormat, ByteStream, Cell, ConnectorContext } from '../../contract/connector.ts';
import type { ValueGate } from '../../cells/value-gate.ts';
import type { DataError } from '../../contract/errors.ts';
import { gateOf } from '../../kits/sql/gate.ts';
import { pendingState } from '../../kits/sql/publish/pending-table.ts';
import { READY } from '../../kits/sql/publish/ready.ts';
import { RejectCount } from '../../kits/sql/rejects.ts';
import { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import { type Loaded, type RowLoad, SqlWriter, type WriterParts } from '../../kits/sql/writer.ts';
import { type MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlDestinationConfig } from '../connection/settings.ts';
import { identifier } from '../connection/sql.ts';
import { loadOf } from './load.ts';
import { takesCopyText } from './load-lines.ts';
import { MysqlRejects } from './rejects.ts';
import { type LoadedColumn, RowLoader } from './row-loader.ts';
import type { Load, Work } from './work.ts';

type Context = ConnectorContext<MysqlDestinationConfig>;

/** An abort must not take longer than this to clean up. */
const CLEAN_UP_MS = 5_000;

/**
 * Each commit is one transaction: the rows, what the mode does with them, the state with its fence. Tables are created
 * before it and swapped after it (load.ts), since both would commit it.
 */
export class MysqlWriter extends SqlWriter {
  readonly byteFormats: ByteFormat[];

  static of(ctx: Context, work: Work & { localInfile: boolean }): MysqlWriter {
    const { target, state, localInfile } = work;
    const rejected = RejectCount.of(target, state.counts);
    const gate = gateOf(work.dialect, target);
    const load = new MysqlLoad(ctx, { ...work, rejected, gate });
    const takesBytes = localInfile && !rejected && !gate?.needsCells && takesCopyText(target);
    return new MysqlWriter({ ctx, target, state, rejected, gate, load }, takesBytes ? ['pgcopy-text'] : []);
  }

  private constructor(
    private readonly work: WriterParts & { load: MysqlLoad },
    byteFormats: ByteFormat[],
  ) {
    super(work);
    this.byteFormats = byteFormats;
  }

  async pipe(stream: ByteStream): Promise<void> {
    await this.guard(async () => {
      await this.prepare();
      await this.work.load.pipe(stream);
    });
  }
}

class MysqlLoad implements RowLoad {
  readonly #load: Load;
  readonly #loader: RowLoader;
  readonly #rejects: MysqlRejects | null;
  /** The table of `#load.leftover` may exist. */
  #mayLeave = false;

  constructor(
    private readonly ctx: Context,
    private readonly work: Work & { localInfile: boolean; rejected: RejectCount | null; gate: ValueGate | null },
  ) {
    const { session, target, localInfile, rejected, gate } = work;
    this.#load = loadOf(work);
    const columns: LoadedColumn[] = target.typed.map(({ name, shape }) => ({ quoted: identifier(name), shape }));
    if (this.#load.stage) columns.push({ quoted: this.#load.stage.change, shape: 'text' });
    this.#loader = new RowLoader(session, { columns, localInfile, table: target.relation, gate });
    this.#rejects = rejected && new MysqlRejects(work, rejected, this.#loader, this.#load.present);
  }

  get incremental(): boolean {
    return this.#load.incremental;
  }

  async prepare(): Promise<void> {
    this.#mayLeave = true;
    this.#loader.restart(await this.#load.prepare());
    await this.#rejects?.prepare();
    await this.work.session.query('start transaction');
  }

  async add(rows: Cell[][], { marked }: { marked: boolean }): Promise<void> {
    if (this.#load.stage && !marked) for (const row of rows) row.push(null);
    await (this.#rejects ?? this.#loader).add(rows);
  }

  async pipe(stream: ByteStream): Promise<void> {
    await this.#loader.addCopied(stream, this.work.target.typed.length);
  }

  async reject(row: Cell[], error: DataError, isDelete: boolean): Promise<void> {
    await this.#rejects!.rejects.refuse(row, error, isDelete);
  }

  changes(): StagedChanges {
    return (this.#load.stage!.changes ??= new StagedChanges());
  }

  async truncate(): Promise<void> {
    await this.#loader.flush();
    // TRUNCATE would commit.
    await this.work.session.query(`delete from ${this.#load.stage!.relation}`, { slow: true });
    this.changes().truncate();
  }

  async commit(record: (loaded: Loaded) => Promise<void>, prepared: boolean, finished: boolean): Promise<void> {
    const { session } = this.work;
    if (prepared) await this.#complete(record);
    else {
      await session.query('start transaction');
      await record({ rows: 0, bytes: 0, extra: { ...pendingState(null), [READY]: null } });
    }
    if (finished) this.#mayLeave = false;
    await session.query('commit', { slow: true });
    await this.#load.finish?.();
  }

  async #complete(record: (loaded: Loaded) => Promise<void>): Promise<void> {
    await this.#loader.flush();
    const { rows, bytes } = this.#loader;
    const { pending = null, ready = null, ...done } = await this.#load.complete(this.#rejects?.rejects ?? null);
    await this.#rejects?.commit();
    await record({
      rows,
      bytes,
      ...done,
      extra: { ...pendingState(pending), [READY]: ready && JSON.stringify(ready) },
    });
  }

  close(): Promise<void> {
    return this.work.session.close();
  }

  /** The open transaction ends with the session; what no transaction holds is dropped. */
  async abort(): Promise<void> {
    await this.close();
    const { leftover } = this.#load;
    if (!leftover || !this.#mayLeave) return;
    const signal = AbortSignal.timeout(CLEAN_UP_MS);
    const drop = (session: MysqlSession) => session.query(`drop table if exists ${leftover}`);
    // The next attempt to open the stream would drop it as well.
    await withSession({ ...this.ctx, signal }, { phase: 'run' }, drop).catch(() => {});
  }

  translate(error: unknown): unknown {
    return this.work.session.translate(error);
  }
}
