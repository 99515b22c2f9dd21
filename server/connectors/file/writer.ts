import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  Batch,
  CommittedState,
  ConnectorContext,
  StreamState,
  WriteCounts,
  Writer,
  WriteTarget,
} from '../define.ts';
import { ConnectorError, FencedError } from '../errors.ts';
import { CommitLog, type CommitRecord } from './commit-log.ts';
import { endingOf, type OutputFile, openOutput } from './output.ts';
import { fileError, folderBelow, safeSegment } from './root.ts';
import type { FileDestinationConfig } from './settings.ts';

export type DestinationContext = ConnectorContext<FileDestinationConfig>;

const NO_COUNTS: WriteCounts = { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 };
/** Files of ours, of any run: what an overwrite replaces. */
const DATA_FILE = /^[\w-]+-\d{5}\.(csv|jsonl|parquet)(\.gz)?$/;

/** The folder that a table's files lie in, below the root for files. */
export const tablePath = (path: string, { schema, table }: Pick<WriteTarget, 'schema' | 'table'>) =>
  [path, ...(schema ? [safeSegment(schema)] : []), safeSegment(table)].join('/');

/** Claims the stream for the target's fence. @throws FencedError when a newer attempt has. */
export async function openFileWriter(ctx: DestinationContext, target: WriteTarget): Promise<FileWriter> {
  const folder = await folderBelow(ctx.filesRoot, tablePath(ctx.config.path, target));
  const states = await folderBelow(ctx.filesRoot, `${ctx.config.path}/_pipeline_state`);
  try {
    const log = await CommitLog.open(states, `${target.connection_id}-${target.stream_id}`);
    const last = log.last;
    if (last && last.fence > target.fence) throw new FencedError();
    await log.apply(folder);
    const committed = last && committedState(last, target);
    await log.append(claim(last, target));
    for (const name of await readdir(folder)) {
      if (name.startsWith(`.${target.stream_id}.`)) await rm(join(folder, name), { recursive: true, force: true });
    }
    return new FileWriter(ctx, { target, folder, log }, committed);
  } catch (error) {
    throw fileError(error, target.table);
  }
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

class FileWriter implements Writer {
  private output: OutputFile | null = null;
  private outputName = '';
  private rows = 0;

  constructor(
    private readonly ctx: DestinationContext,
    private readonly work: { target: WriteTarget; folder: string; log: CommitLog },
    readonly committed: CommittedState | null,
  ) {}

  async write(batch: Batch): Promise<void> {
    await this.guard(async () => {
      this.output ??= await this.begin();
      await this.output.write(batch.rows);
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
      if (this.work.target.mode === 'overwrite') this.output ??= await this.begin();
      return this.commit(state, true);
    });
  }

  async abort(): Promise<void> {
    const { output } = this;
    this.output = null;
    await output?.discard();
  }

  private async begin(): Promise<OutputFile> {
    const { target, folder } = this.work;
    this.outputName = `.${target.stream_id}.${target.fence}.${endingOf(this.ctx.config)}`;
    return openOutput(join(folder, this.outputName), target.columns, this.ctx.config);
  }

  private counts(): WriteCounts {
    const { log, target } = this.work;
    return log.last?.stream_run_id === target.stream_run_id ? log.last.counts : NO_COUNTS;
  }

  private async commit(state: StreamState | null, finished: boolean): Promise<WriteCounts> {
    const { target, folder, log } = this.work;
    const last = log.last as CommitRecord;
    const counts = { ...this.counts() };
    const publish: CommitRecord['publish'] = [];
    if (this.output) {
      counts.bytes_loaded += await this.output.close();
      counts.rows_loaded += this.rows;
      const to = `${target.stream_run_id}-${String(last.files).padStart(5, '0')}.${endingOf(this.ctx.config)}`;
      publish.push({ from: this.outputName, to });
    }
    const replaced = finished && target.mode === 'overwrite' ? await readdir(folder) : [];
    await log.append({
      fence: target.fence,
      stream_run_id: target.stream_run_id,
      state: state ?? last.state,
      state_version: last.state_version + (state ? 1 : 0),
      finished,
      counts,
      files: last.files + publish.length,
      publish,
      remove: replaced.filter((name) => DATA_FILE.test(name) && name !== publish[0]?.to),
    });
    [this.output, this.rows] = [null, 0];
    await log.apply(folder);
    return counts;
  }

  private async guard<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      // A newer attempt sweeps away what this one has open.
      if (!(error instanceof ConnectorError)) await this.work.log.assertNewest();
      throw fileError(error, this.work.target.table);
    }
  }
}
