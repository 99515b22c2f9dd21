import type {
  Batch,
  ByteFormat,
  ByteStream,
  CommittedState,
  ConnectorContext,
  StreamState,
  TargetColumn,
  WriteCounts,
  Writer,
  WriteTarget,
} from '../contract/connector.ts';
import { FencedError } from '../contract/errors.ts';
import type { CommitRecord } from '../kits/files/stores/commit-log.ts';
import { LocalTable } from '../kits/files/stores/local-table.ts';
import { endingOf, type OutputFile, openOutput } from '../kits/files/formats/output.ts';
import { binarySegments, isBinaryColumn } from '../kits/files/formats/parquet-binary.ts';
import { type Segment, textSegments } from '../kits/files/formats/parquet-segments.ts';
import { fileError, safeSegment } from '../kits/files/stores/local-files.ts';
import { Bucket } from '../kits/files/stores/s3-client.ts';
import { S3Table } from '../kits/files/stores/s3-table.ts';
import type { FileDestinationConfig } from './settings.ts';
import type { Draft, TableStore } from '../kits/files/stores/table-store.ts';

export type DestinationContext = ConnectorContext<FileDestinationConfig>;

const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };
/** Files of ours, of any run: what an overwrite replaces. */
const DATA_FILE = /^[\w-]+-\d{5}\.(csv|jsonl|parquet)(\.gz)?$/;

/** The folder that a table's files lie in, below the root for files. */
export const tablePath = (path: string, { schema, table }: Pick<WriteTarget, 'schema' | 'table'>) =>
  [path, ...(schema ? [safeSegment(schema)] : []), safeSegment(table)].join('/');

/** Claims the stream for the target's fence. @throws FencedError when a newer attempt has. */
export async function openFileWriter(ctx: DestinationContext, target: WriteTarget): Promise<FileWriter> {
  try {
    const store = await openStore(ctx, target);
    const { last } = store;
    if (last && last.fence > target.fence) throw new FencedError();
    await store.apply();
    const committed = last && committedState(last, target);
    await store.append(claim(last, target));
    await store.sweep();
    return new FileWriter(ctx, { target, store }, committed);
  } catch (error) {
    throw fileError(error, target.table);
  }
}

function openStore(ctx: DestinationContext, target: WriteTarget): Promise<TableStore> {
  const { config, filesRoot } = ctx;
  const paths = { table: tablePath(config.path, target), states: `${config.path}/_pipeline_state` };
  return config.location === 's3'
    ? S3Table.open(new Bucket(ctx, config), { ...paths, scratch: filesRoot }, target)
    : LocalTable.open(filesRoot, paths, target);
}

/** Null when the control plane knows at least as much. */
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

/** The first record of an attempt: the same state under the new fence. The files of the last one lie in place. */
function claim(last: CommitRecord | null, target: WriteTarget): CommitRecord {
  const { fence, stream_run_id, state_version } = target;
  const none = { state: null, state_version, finished: false, counts: NO_COUNTS, files: 0 };
  const base = last ?? { ...none, stream_run_id: '' };
  // A state older than the control plane's (somebody moved the cursor there) must never come back as the newer one.
  const stale = base.state_version < state_version ? { state: null, state_version } : {};
  const same = base.stream_run_id === stream_run_id;
  return { ...base, ...stale, files: same ? base.files : 0, fence, publish: [], remove: [] };
}

function parquetFormats(columns: TargetColumn[]): ByteFormat[] {
  // A line of one column may be empty, which DuckDB's reader would pass over.
  const text: ByteFormat[] = columns.length > 1 ? ['pgcopy-text'] : [];
  return columns.every(isBinaryColumn) ? ['pgcopy-binary', ...text] : text;
}

interface Named {
  draft: Draft;
  name: string;
}

class FileWriter implements Writer {
  readonly byteFormats: ByteFormat[];
  private output: (Named & { file: OutputFile }) | null = null;
  /** Files that are whole, and their size. */
  private kept: Named[] = [];
  private keptBytes = 0;
  private rows = 0;

  constructor(
    private readonly ctx: DestinationContext,
    private readonly work: { target: WriteTarget; store: TableStore },
    readonly committed: CommittedState | null,
  ) {
    this.byteFormats = ctx.config.format === 'parquet' ? parquetFormats(work.target.columns) : [];
  }

  /** A file for each segment: while one is made, the next one comes in. */
  async pipe({ format, chunks, rows }: ByteStream): Promise<void> {
    const { columns } = this.work.target;
    await this.guard(async () => {
      const segments =
        format === 'pgcopy-binary'
          ? binarySegments(chunks, columns)
          : textSegments(chunks, { scratch: `${this.ctx.filesRoot}/.spill`, columns });
      let making: Promise<void> = Promise.resolve();
      try {
        for await (const segment of segments) {
          const before = making;
          making = this.make(segment, before);
          making.catch(() => {});
          await before;
        }
      } finally {
        await making.catch(() => {});
      }
      await making;
      this.rows += rows();
    });
  }

  private async make(segment: Segment, before: Promise<void>): Promise<void> {
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
      this.output ??= await this.begin();
      await this.output.file.write(batch.rows);
      this.rows += batch.rows.length;
    });
  }

  /** The rows of an overwrite stay aside until the end: a part of them is nothing to go on from. */
  async checkpoint(state: StreamState): Promise<WriteCounts> {
    if (this.work.target.mode === 'overwrite') return this.counts();
    return this.guard(() => this.commit(state, false));
  }

  async finish(state: StreamState | null): Promise<WriteCounts> {
    return this.guard(async () => {
      // A stream without rows replaces the old ones too, by a file that has only the columns.
      const empty = this.kept.length === 0;
      if (empty && this.work.target.mode === 'overwrite') this.output ??= await this.begin();
      return this.commit(state, true);
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
    return { ...named, file: await openOutput(named.draft, this.work.target.columns, this.ctx.config) };
  }

  private async draft(): Promise<Named> {
    const { target, store } = this.work;
    const number = String((store.last?.files ?? 0) + this.kept.length).padStart(5, '0');
    const name = `${target.stream_run_id}-${number}.${endingOf(this.ctx.config)}`;
    return { draft: await store.draft(name), name };
  }

  private counts(): WriteCounts {
    const { store, target } = this.work;
    return store.last?.stream_run_id === target.stream_run_id ? store.last.counts : NO_COUNTS;
  }

  private async commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { target, store } = this.work;
    const last = store.last as CommitRecord;
    const counts = { ...this.counts() };
    if (this.output) this.keptBytes += await this.output.file.close();
    const files = this.output ? [...this.kept, this.output] : this.kept;
    counts.bytes_loaded += this.keptBytes;
    counts.rows_loaded += this.rows;
    const replaced = finished && target.mode === 'overwrite' ? await store.files() : [];
    await store.append({
      fence: target.fence,
      stream_run_id: target.stream_run_id,
      state: state ?? last.state,
      state_version: last.state_version + (state ? 1 : 0),
      finished,
      counts,
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
      // A newer attempt sweeps away what this one has open.
      if (!(error instanceof FencedError)) await this.work.store.assertNewest();
      throw fileError(error, this.work.target.table);
    }
  }
}
