import type {
  Batch,
  ByteFormat,
  ByteStream,
  CommittedState,
  HeldPosition,
  StreamState,
  WriteCounts,
  Writer,
  WriteTarget,
} from '../../contract/connector.ts';
import { FencedError } from '../../contract/errors.ts';
import { type ChangedValues, sumOfChanged, ValueGate, warnOfChanged } from '../../cells/value-gate.ts';
import { refuseReserved } from '../../contract/reserved-names.ts';
import { OUTPUT_FORMATS } from './formats.ts';
import type { OutputFile, Segment } from './formats/format.ts';
import type { DestinationContext } from './settings/files.ts';
import { openTableStore } from './stores.ts';
import { fileError } from './stores/local-files.ts';
import type { CommitRecord, Draft, TableStore } from './stores/store.ts';

const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };
/** The run of a claim before the first commit. */
const NO_RUN = '';
/** Matches the data files of any run: an overwrite replaces them. */
export const DATA_FILE = new RegExp(String.raw`^[\w-]+-\d{5}\.(${Object.keys(OUTPUT_FORMATS).join('|')})(\.gz)?$`);

/**
 * Opens a table of files and claims the stream for the target's fence.
 * @throws FencedError if a newer attempt has claimed it
 */
export async function openTableWriter(ctx: DestinationContext, target: WriteTarget): Promise<Writer> {
  refuseReserved(target.table);
  try {
    const { store, last } = await claimTable(ctx, target);
    const committed = last && committedState(last, target);
    const held = {
      state: last?.state ?? null,
      state_version: last?.state_version ?? 0,
      stream_run_id: last?.stream_run_id || null,
    };
    await store.sweep();
    // Files belong to their readers, which may move or delete them: only a lost log of commits counts.
    const has_table =
      (last !== null && last.stream_run_id !== NO_RUN) || (await store.files()).some((name) => DATA_FILE.test(name));
    return new TableWriter(ctx, { target, store }, { committed, held: { ...held, has_table } });
  } catch (error) {
    throw fileError(error, target.table);
  }
}

/** Opens a table under the target's fence. @returns the last commit before it, too */
async function claimTable(ctx: DestinationContext, target: WriteTarget) {
  while (true) {
    const store = await openTableStore(ctx, target);
    const { last } = store;
    if (last && last.fence > target.fence) throw new FencedError(last.fence);
    await store.apply();
    try {
      await store.append(claim(last, target));
      return { store, last };
    } catch (error) {
      // An attempt under a lower fence may have committed meanwhile. It cannot after the claim.
      if (!(error instanceof FencedError && error.fence === null)) throw error;
    }
  }
}

/** Null if the control plane's state is as new. */
function committedState(last: CommitRecord, target: WriteTarget): CommittedState | null {
  const same = last.stream_run_id === target.stream_run_id;
  if (!same && last.state_version <= target.state_version) return null;
  return {
    state: last.state,
    state_version: last.state_version,
    same_stream_run: same,
    finished: same && last.finished,
    counts: same ? last.counts : NO_COUNTS,
  };
}

/** The first record of an attempt: the last commit under the new fence. Nothing is left to publish. */
function claim(last: CommitRecord | null, { fence, stream_run_id }: WriteTarget): CommitRecord {
  const none = { state: null, state_version: 0, finished: false, counts: NO_COUNTS, files: 0 };
  const base = last ?? { ...none, stream_run_id: NO_RUN };
  const same = base.stream_run_id === stream_run_id;
  return { ...base, files: same ? base.files : 0, fence, publish: [], remove: [] };
}

/** A state older than the control plane's (where a user can set the cursor) must never return as the newer one. */
const currentState = (last: CommitRecord, { state_version }: WriteTarget) =>
  last.state_version < state_version
    ? { state: null, state_version }
    : { state: last.state, state_version: last.state_version };

interface NamedDraft {
  draft: Draft;
  name: string;
}

/** Formats have taken over the bytes of a chunk when they ask for the next one. */
async function* givenBack(chunks: AsyncIterable<Uint8Array>, reuse: ByteStream['reuse']): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    yield chunk;
    reuse?.(chunk);
  }
}

class TableWriter implements Writer {
  readonly byteFormats: ByteFormat[];
  readonly committed: CommittedState | null;
  readonly held: HeldPosition;
  readonly #gate: ValueGate | null;
  /** Values that earlier attempts of this stream run have changed and committed. */
  readonly #changedBefore: ChangedValues;
  private output: (NamedDraft & { file: OutputFile }) | null = null;
  /** Finished files that are not committed yet, and their total size. */
  private kept: NamedDraft[] = [];
  private keptBytes = 0;
  private rows = 0;

  constructor(
    private readonly ctx: DestinationContext,
    private readonly work: { target: WriteTarget; store: TableStore },
    { committed, held }: { committed: CommittedState | null; held: HeldPosition },
  ) {
    this.committed = committed;
    this.held = held;
    this.#gate = ValueGate.ofTarget(work.target, this.format.texts, this.format.holds);
    this.#changedBefore = this.#ownCommit?.changed ?? {};
    if (committed?.finished) this.#warn();
    this.byteFormats = this.#gate?.needsCells ? [] : (this.format.bytes?.formats(work.target.columns) ?? []);
  }

  private get format() {
    return OUTPUT_FORMATS[this.ctx.config.format];
  }

  /** Writes one file per segment, while the next segment arrives. */
  async pipe({ format, chunks, rows, reuse }: ByteStream): Promise<void> {
    const { columns } = this.work.target;
    await this.guard(async () => {
      const scratch = `${this.ctx.filesRoot}/.spill`;
      const segments = this.format.bytes?.segments(format, givenBack(chunks, reuse), { columns, scratch }) ?? [];
      let writing: Promise<void> = Promise.resolve();
      try {
        for await (const segment of segments) {
          const before = writing;
          writing = this.writeSegment(segment, before);
          writing.catch(() => {});
          await before;
        }
      } finally {
        await writing.catch(() => {});
      }
      await writing;
      this.rows += rows();
    });
  }

  private async writeSegment(segment: Segment, before: Promise<void>): Promise<void> {
    try {
      await before;
      const named = await this.draft();
      this.kept.push(named);
      this.keptBytes += await segment.write(named.draft);
    } finally {
      await segment.close();
    }
  }

  async write(batch: Batch): Promise<void> {
    await this.guard(async () => {
      this.#gate?.takeAll(batch.rows);
      this.output ??= await this.begin();
      await this.output.file.write(batch.rows);
      this.rows += batch.rows.length;
    });
  }

  /** An overwrite commits at the end only: a part of its rows must not replace the table. */
  async checkpoint(state: StreamState): Promise<WriteCounts> {
    if (this.work.target.mode === 'overwrite') return this.counts();
    return this.guard(() => this.commit(state, false));
  }

  async finish(state: StreamState | null): Promise<WriteCounts> {
    return this.guard(async () => {
      // A stream without rows replaces the old ones too, with a file that has only the columns.
      const empty = this.kept.length === 0;
      if (empty && this.work.target.mode === 'overwrite') this.output ??= await this.begin();
      const counts = await this.commit(state, true);
      this.#warn();
      return counts;
    });
  }

  async abort(): Promise<void> {
    const { output, kept } = this;
    [this.output, this.kept] = [null, []];
    await output?.file.discard();
    for (const { draft } of kept) await draft.discard();
  }

  private async begin() {
    const named = await this.draft();
    return { ...named, file: await this.format.create(named.draft, this.work.target.columns, this.ctx.config) };
  }

  private async draft(): Promise<NamedDraft> {
    const { target, store } = this.work;
    const number = String((store.last?.files ?? 0) + this.kept.length).padStart(5, '0');
    const name = `${target.stream_run_id}-${number}.${this.format.outputExtension(this.ctx.config)}`;
    return { draft: await store.draft(name), name };
  }

  private counts(): WriteCounts {
    return this.#ownCommit?.counts ?? NO_COUNTS;
  }

  get #ownCommit(): CommitRecord | null {
    const { store, target } = this.work;
    return store.last?.stream_run_id === target.stream_run_id ? store.last : null;
  }

  /** Of what is committed. */
  #warn(): void {
    const changed = this.#ownCommit?.changed ?? {};
    warnOfChanged(this.work.target.table, changed, (code, message) => this.ctx.warn(code, message));
  }

  private async commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { target, store } = this.work;
    const last = store.last as CommitRecord;
    const counts = { ...this.counts() };
    if (this.output) this.keptBytes += await this.output.file.close();
    const files = this.output ? [...this.kept, this.output] : this.kept;
    counts.bytes_loaded += this.keptBytes;
    counts.rows_loaded += this.rows;
    const current = currentState(last, target);
    const replaced = finished && target.mode === 'overwrite' ? await store.files() : [];
    await store.append({
      fence: target.fence,
      stream_run_id: target.stream_run_id,
      state: state ?? current.state,
      state_version: current.state_version + (state ? 1 : 0),
      finished,
      counts,
      changed: sumOfChanged(this.#changedBefore, this.#gate?.changed ?? {}),
      files: last.files + files.length,
      publish: files.map(({ draft }) => draft.published()),
      remove: replaced.filter((name) => DATA_FILE.test(name) && files.every((file) => file.name !== name)),
    });
    [this.output, this.kept, this.keptBytes, this.rows] = [null, [], 0, 0];
    await store.apply();
    return counts;
  }

  private async guard<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      // A newer attempt removes what this one has open: report that instead of the missing file.
      if (!(error instanceof FencedError)) await this.work.store.assertNewest();
      throw fileError(error, this.work.target.table);
    }
  }
}
