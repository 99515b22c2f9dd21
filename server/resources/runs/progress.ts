import { setTimeout as pause } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { z } from 'zod';
import { connectionRuns, streamRuns } from '../../../db/schema/index.ts';
import { authenticate, type Credentials } from '../../api/authentication.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { count } from '../../api/wire-types.ts';
import { findRun, type RunKey } from '../access/run.ts';
import { viewing } from './list.ts';
import { presentRun, presentStreamRun } from './present.ts';
import { selectRuns, selectStreamRuns } from './query.ts';
import { ConnectionRunSchema, StreamRunSchema } from './schema.ts';

export const FollowedRun = z.strictObject({ connection_id: z.string(), connection_run_id: z.string() });
export const RunById = z.strictObject({ connection_run_id: z.string() });

/** A run and its streams at one moment. */
export const RunProgress = z.object({
  run: ConnectionRunSchema,
  stream_runs: z.array(StreamRunSchema),
  log_lines: count().meta({ description: 'A higher number means that the log has more lines.' }),
});
export type RunProgress = z.infer<typeof RunProgress>;

/** A client sees a change within a second. The other half is for queries and the network. */
const EVERY_MS = 500;
/** A revoked key ends the subscription within this time. */
const CHECK_KEY_EVERY_MS = 5_000;
const MAX_FOLLOWERS = 100;
const MAX_FOLLOWERS_OF_A_USER = 20;
const ALL = { offset: 0 };

/** By user, in this process. */
const followers = new Map<string, number>();

/** The number of subscriptions in this process. Tests check that none is left behind. */
export const followersNow = () => [...followers.values()].reduce((sum, own) => sum + own, 0);

/**
 * Yields the run and its streams at once and then within a second of each change. Ends after the final state of the run,
 * or when `signal` is aborted.
 * @throws ApiError 404; 401 within 5 s of the end of the key; 400 `too_many_followers`.
 */
export async function* followRun(
  ctx: Ctx & Credentials,
  key: z.infer<typeof FollowedRun>,
  signal: AbortSignal,
): AsyncGenerator<RunProgress, void> {
  const { id } = await findRun(ctx, key);
  using _slot = takeSlot(ctx.principal.user_id);
  let last = '';
  let checked = performance.now();
  while (!signal.aborted) {
    const progress = await readProgress(ctx, id);
    const seen = comparable(progress);
    if (seen !== last) yield progress;
    last = seen;
    if (!isLiveRun(progress.run.status)) return;
    if (!(await waited(signal))) return;
    if (performance.now() - checked > CHECK_KEY_EVERY_MS) {
      await authenticate(ctx.deps, ctx);
      checked = performance.now();
    }
  }
}

/** Reads a run and its streams once. @throws ApiError 404. */
export async function readRun(ctx: Ctx, key: RunKey): Promise<RunProgress> {
  return readProgress(ctx, (await findRun(ctx, key)).id);
}

async function readProgress(ctx: Ctx, run_id: string): Promise<RunProgress> {
  // The run first: if it has ended, the streams read after it have ended too.
  const [run] = await selectRuns(ctx.db, eq(connectionRuns.id, run_id), ALL);
  if (!run) throw notFound('Connection run');
  const streams = await selectStreamRuns(ctx.db, eq(streamRuns.connection_run_id, run_id), ALL);
  const view = viewing(ctx);
  return {
    run: presentRun(run, view),
    stream_runs: streams.map((stream) => presentStreamRun(stream, view)),
    log_lines: streams.reduce((sum, { log_lines }) => sum + log_lines, 0),
  };
}

/** Leaves out fields that change without progress. */
const comparable = (progress: RunProgress) =>
  JSON.stringify(progress, (name, value) => (name === 'duration_ms' || name === 'updated_at' ? undefined : value));

/** False if the client has disconnected. */
const waited = (signal: AbortSignal): Promise<boolean> =>
  pause(EVERY_MS, undefined, { signal }).then(
    () => true,
    () => false,
  );

function takeSlot(user_id: string): Disposable {
  const own = followers.get(user_id) ?? 0;
  if (own >= MAX_FOLLOWERS_OF_A_USER || followersNow() >= MAX_FOLLOWERS) {
    throw badRequest('too_many_followers', 'Too many open run subscriptions. Close some, or poll the run instead');
  }
  followers.set(user_id, own + 1);
  return {
    [Symbol.dispose]: () => {
      const rest = (followers.get(user_id) ?? 1) - 1;
      if (rest > 0) followers.set(user_id, rest);
      else followers.delete(user_id);
    },
  };
}
