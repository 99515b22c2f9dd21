import { expect, test } from 'bun:test';
import { eq, inArray } from 'drizzle-orm';
import { connectionRuns, connections } from '../../db/schema/index.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline } from '../support/pipeline.ts';
import { until } from '../support/until.ts';
import { spawnPart } from '../support/worker-process.ts';

const service = await testDeps();
const { db } = service.deps;

test('two API and two worker processes together fire each tick once, tick after tick', async () => {
  const schedule = {
    type: 'cron',
    interval_minutes: null,
    // So rare that no tick of its own is due while the test runs.
    cron_expression: '0 0 29 2 *',
    timezone: 'UTC',
    time_of_day: null,
  };
  const created: string[] = [];
  for (let n = 0; n < 6; n += 1) {
    const pipeline = await makePipeline(service, {
      source: { name: 'sample', parameters: { rows: 1 } },
      destination: { name: 'sample', parameters: {} },
      connection: { schedule: schedule as typeof connections.$inferInsert.schedule },
    });
    created.push(pipeline.connection.id);
  }
  const runs = () => db.select().from(connectionRuns).where(inArray(connectionRuns.connection_id, created));
  const parts = ['api', 'api', 'worker', 'worker'].map((part) => spawnPart(service, part));
  for (let tick = 1; tick <= 3; tick += 1) {
    // The test does not wait for the clock: each round makes a tick due at the same instant for all.
    await db
      .update(connections)
      .set({ next_run_at: new Date(Date.now() - 1000).toISOString() })
      .where(inArray(connections.id, created));
    await until(
      async () => {
        const done = (await runs()).filter((run) => run.status === 'succeeded' || run.status === 'skipped');
        return done.length >= tick * created.length;
      },
      { what: `tick ${tick} of every connection` },
    );
  }
  const all = await runs();
  for (const id of created) expect(all.filter((run) => run.connection_id === id)).toHaveLength(3);
  expect(all.every((run) => run.trigger_type === 'schedule')).toBe(true);
  const [next] = await db
    .select()
    .from(connections)
    .where(eq(connections.id, created[0] ?? ''));
  expect(Date.parse(next?.next_run_at ?? '')).toBeGreaterThan(Date.now());
  for (const part of parts) part.kill('SIGKILL');
});
