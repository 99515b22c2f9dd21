import type { ApiClient } from '../../../api.ts';
import { CommandError } from '../../exit.ts';
import { nameOf } from '../../follow.ts';
import type { Migration } from './migration.ts';

type Progress = Awaited<ReturnType<ApiClient['cut_over']['progress']['query']>>;

/** While tables are copied. */
const COPY_MS = 500;
/** While the application waits. */
const PAUSE_MS = 20;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until all tables follow the log, and a position of it arrives within the lag. */
export async function untilCaughtUp(migration: Migration, max_lag_seconds: number): Promise<void> {
  const { api, connection, cli } = migration;
  const known = connection.last_run?.id ?? null;
  let shown = '';
  for (;;) {
    const marked = performance.now();
    const { position } = await api.cut_over.mark.mutate({ connection_id: connection.id });
    for (;;) {
      const progress = await api.cut_over.progress.query({ connection_id: connection.id, position });
      refuseLost(progress);
      if (progress.is_applied) break;
      const text = progressText(progress);
      if (text !== shown) cli.note(text);
      shown = text;
      await requireRunning(migration, known);
      await sleep(COPY_MS);
    }
    const seconds = (performance.now() - marked) / 1000;
    if (seconds <= max_lag_seconds) return;
    cli.note(`The destination is ${Math.ceil(seconds)} s behind`);
  }
}

/** The current end of the log, once it is applied. */
export async function reachEnd({ api, connection }: Migration) {
  const mark = await api.cut_over.mark.mutate({ connection_id: connection.id });
  for (;;) {
    const progress = await api.cut_over.progress.query({ connection_id: connection.id, position: mark.position });
    refuseLost(progress);
    if (progress.is_applied) return { ...mark, rows_applied: progress.rows_applied };
    await sleep(PAUSE_MS);
  }
}

function progressText({ streams }: Progress): string {
  const copied = streams.filter(({ reason }) => reason !== 'not_copied').length;
  return copied < streams.length
    ? `Copying: ${copied} of ${streams.length} tables follow the log`
    : `Following: ${streams.length} tables`;
}

const REASONS = {
  not_followed: 'is not read from the change log. Set it to incremental, or deselect it',
  parked: 'is parked, because its changes could not be applied. Solve the problem and reset its cursor',
};

function refuseLost({ streams }: Progress): void {
  if (streams.length === 0) throw new CommandError('failed', 'No stream of the connection is selected');
  for (const { reason, stream_name } of streams) {
    if (reason === null || reason === 'not_copied') continue;
    throw new CommandError('failed', `${stream_name} ${REASONS[reason]}`);
  }
}

/** Otherwise nothing, or not everything, would ever arrive. */
async function requireRunning({ api, connection: { id } }: Migration, known_run: string | null): Promise<void> {
  const { status, status_reason, last_run } = await api.connections.get.query({ connection_id: id });
  if (status !== 'active')
    throw new CommandError('failed', `The connection is ${status} (${status_reason ?? 'manual'})`);
  if (!last_run || last_run.id === known_run) return;
  const failed = await failedStreams(api, last_run.id);
  if (failed.length > 0) throw new CommandError('failed', failed.join('; '));
  if (last_run.status !== 'failed') return;
  throw new CommandError('failed', `The run failed. \`runs show ${last_run.id}\` has the reason`);
}

/** A run that follows the log goes on without them, until the next run. */
export async function failedStreams(api: ApiClient, connection_run_id: string): Promise<string[]> {
  const { stream_runs } = await api.runs.get.query({ connection_run_id });
  return stream_runs.flatMap((one) =>
    one.status === 'failed' ? [`${nameOf(one)} failed: ${one.error?.message} (${one.error?.code})`] : [],
  );
}
