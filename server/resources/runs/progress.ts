import { setTimeout as pause } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { z } from 'zod';
import { connectionRuns, streamRuns } from '../../../db/schema/index.ts';
import { authenticate, type Credentials } from '../../api/authentication.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findRun } from '../access/run.ts';
import { viewing } from './list.ts';
import { presentRun, presentStreamRun } from './present.ts';
import { selectRuns, selectStreamRuns } from './query.ts';
import { ConnectionRunSchema, StreamRunSchema } from './schema.ts';

export const FollowedRun = z.strictObject({ connection_id: z.string(), connection_run_id: z.string() });
export const RunById = z.strictObject({ connection_run_id: z.string() });

/** A run and its streams at one moment. */
export const RunProgress = z.object({ run: ConnectionRunSchema, stream_runs: z.array(StreamRunSchema) });
export type RunProgress = z.infer<typeof RunProgress>;

/** Half of the second that a viewer may be behind: the rest is for the statements and the way. */
const EVERY_MS = 500;
/** A key that was revoked is noticed after this time at the latest. */
const CHECK_KEY_EVERY_MS = 5_000;
const MAX_FOLLOWERS = 100;
const MAX_FOLLOWERS_OF_A_USER = 20;
const ALL = { offset: 0 };

/** By user, in this process. */
const followers = new Map<string, number>();

/** How many follow a run in this process; for tests, which look that nobody stays behind. */
export const followersNow = () => [...followers.values()].reduce((sum, count) => sum + count, 0);

/**
 * Yields the run and its streams: at once, then after each change, at most a second behind it, and ends after the run's
 * final state. Ends as well when `signal` is aborted.
 * @throws ApiError 404; 401 within 5 s after the key has come to its end; 400 `too_many_followers`.
 */
export async function* followRun(
  ctx: Ctx & Credentials,
  key: z.infer<typeof FollowedRun>,
  signal: AbortSignal,
): AsyncGenerator<RunProgress, void> {
  const { id } = await findRun(ctx, key);
  using _place = takePlace(ctx.principal.user_id);
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

/** The same once, of a run by its id alone. @throws ApiError 404. */
export async function readRun(ctx: Ctx, key: z.infer<typeof RunById>): Promise<RunProgress> {
  return readProgress(ctx, (await findRun(ctx, key)).id);
}

async function readProgress(ctx: Ctx, run_id: string): Promise<RunProgress> {
  // The run first: when it has ended, so have the streams that are read after it.
  const [run] = await selectRuns(ctx.db, eq(connectionRuns.id, run_id), ALL);
  if (!run) throw notFound('Connection run');
  const streams = await selectStreamRuns(ctx.db, eq(streamRuns.connection_run_id, run_id), ALL);
  const view = viewing(ctx);
  return { run: presentRun(run, view), stream_runs: streams.map((stream) => presentStreamRun(stream, view)) };
}

/** Without what only says that time went by. */
const comparable = (progress: RunProgress) =>
  JSON.stringify(progress, (name, value) => (name === 'duration_ms' || name === 'updated_at' ? undefined : value));

/** False: the listener has gone. */
const waited = (signal: AbortSignal): Promise<boolean> =>
  pause(EVERY_MS, undefined, { signal }).then(
    () => true,
    () => false,
  );

function takePlace(user_id: string): Disposable {
  const own = followers.get(user_id) ?? 0;
  if (own >= MAX_FOLLOWERS_OF_A_USER || followersNow() >= MAX_FOLLOWERS) {
    throw badRequest(
      'too_many_followers',
      'Too many runs are being followed; close some, or read the run now and then',
    );
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
