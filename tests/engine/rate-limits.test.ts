import { expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { events, streamRuns } from '../../db/schema/index.ts';
import { claimStream, recordProgress } from '../../server/runs/claim-stream.ts';
import { Attempt } from '../../server/transfer/attempt.ts';
import { markRateLimited } from '../../server/runs/rate-limits.ts';
import { testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

const service = await testDeps();
const { deps } = service;
const { db } = deps;
const sample = { name: 'sample', parameters: {} };
const LATER = new Date(Date.now() + 60_000).toISOString();

async function claimed() {
  const run_id = await (await makePipeline(service, { source: sample, destination: sample })).start();
  const [stream] = await getStreamRuns(service, run_id);
  return (await claimStream(db, stream!.id, deps.worker_id))!;
}
const emitted = (id: string) =>
  db
    .select()
    .from(events)
    .where(and(eq(events.event, 'stream_run_rate_limited'), eq(events.stream_run_id, id)));

test('a rate-limited wait emits one event, at its next heartbeat, and the next wait another', async () => {
  const claim = await claimed();
  const attempt = new Attempt(deps, claim);
  attempt.hooks('source').rateLimited(new Date(LATER));
  await until(async () => (await emitted(claim.stream_run.id)).length === 1);
  for (let n = 0; n < 3; n += 1) await markRateLimited(db, claim, LATER);
  const [first, ...more] = await emitted(claim.stream_run.id);
  expect(more).toEqual([]);
  expect(first?.payload).toMatchObject({
    rate_limited_until: LATER,
    stream_name: 'stream_1',
    run_number: 1,
    attempt: 1,
  });
  attempt.recordRead(1, 1);
  expect(await recordProgress(db, claim, attempt.progress)).toBe('running');
  await markRateLimited(db, claim, LATER);
  expect(await emitted(claim.stream_run.id)).toHaveLength(2);
  await attempt.close();
});

test('a worker that lost the lease emits no rate-limit event', async () => {
  const claim = await claimed();
  await db
    .update(streamRuns)
    .set({ fence: claim.stream_run.fence + 1 })
    .where(eq(streamRuns.id, claim.stream_run.id));
  await markRateLimited(db, claim, LATER);
  expect(await emitted(claim.stream_run.id)).toEqual([]);
});
