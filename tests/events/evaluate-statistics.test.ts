import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connectionRuns, connectionStreams, streamRuns } from '../../db/schema/index.ts';
import { runStatistics, streamRowsZscore } from '../../server/events/statistics.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline } from '../support/pipeline.ts';

const server = await testDeps();
const { db } = server.deps;
const START = Date.parse('2026-01-01T00:00:00Z');

type Past = { rows: number; seconds: number } & Partial<typeof connectionRuns.$inferInsert>;

/** A connection with these past runs, oldest first. */
async function history(past: Past[]) {
  const sample = { name: 'sample', parameters: {} };
  const { connection } = await makePipeline(server, { source: sample, destination: sample });
  const [stream] = await db.select().from(connectionStreams).where(eq(connectionStreams.connection_id, connection.id));
  const owner = { account_id: server.account_id, connection_id: connection.id };
  for (const [at, { rows, seconds, ...run }] of past.entries()) {
    const started = START + at * 3_600_000;
    const id = Bun.randomUUIDv7();
    const instant = (ms: number) => new Date(ms).toISOString();
    await db.insert(connectionRuns).values({
      ...owner,
      id,
      number: at + 1,
      status: 'succeeded',
      run_type: 'plain',
      trigger_type: 'schedule',
      queued_at: instant(started),
      created_at: instant(started),
      started_at: instant(started),
      finished_at: instant(started + seconds * 1000),
      ...run,
    });
    await db.insert(streamRuns).values({
      ...owner,
      connection_run_id: id,
      stream_id: stream!.id,
      stream_name: stream!.name,
      status: 'succeeded',
      finished_at: instant(started + seconds * 1000),
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      rows_loaded: rows,
    });
  }
  const run = { id: Bun.randomUUIDv7(), connection_id: connection.id };
  return {
    of: (rows_loaded: number, duration_ms: number) => runStatistics(db, { ...run, rows_loaded, duration_ms }),
    stream: (rows_loaded: number) =>
      streamRowsZscore(db, {
        connection_id: connection.id,
        connection_run_id: run.id,
        stream_id: stream!.id,
        rows_loaded,
      }),
  };
}

const runs = (...rows: number[]): Past[] => rows.map((one) => ({ rows: one, seconds: one / 10 }));

describe('statistics of the last runs', () => {
  test('include mean, sample deviation and z-score of rows and duration', async () => {
    const past = await history(runs(80, 90, 100, 110, 120));
    const std = Math.sqrt(250);
    const found = await past.of(100 - 4 * std, 10_000 + 2000 * std);
    expect(found.rows_loaded_mean).toBe(100);
    expect(found.rows_loaded_std).toBeCloseTo(std, 9);
    expect(found.rows_loaded_zscore).toBeCloseTo(-4, 9);
    expect(found.duration_ms_mean).toBe(10_000);
    expect(found.duration_ms_std).toBeCloseTo(100 * std, 6);
    expect(found.duration_ms_zscore).toBeCloseTo(20, 6);
    expect(await past.stream(100 + std)).toBeCloseTo(1, 9);
  });

  test('have no z-score before five runs, and no mean before the first', async () => {
    const four = await history(runs(10, 20, 30, 40));
    const found = await four.of(10, 10);
    expect([found.rows_loaded_mean, found.rows_loaded_zscore, found.duration_ms_zscore]).toEqual([25, null, null]);
    expect(await four.stream(10)).toBeNull();
    expect(await (await history([])).of(1, 1)).toEqual({
      duration_ms_mean: null,
      duration_ms_std: null,
      duration_ms_zscore: null,
      rows_loaded_mean: null,
      rows_loaded_std: null,
      rows_loaded_zscore: null,
    });
  });

  test('include only the last thirty successful plain runs', async () => {
    const others = [
      { rows: 1_000_000, seconds: 1, status: 'failed' as const },
      { rows: 1_000_000, seconds: 1, run_type: 'full_refresh' as const },
    ];
    const past = await history([...runs(5000, 5000), ...others, ...runs(...Array.from({ length: 30 }, () => 100))]);
    expect((await past.of(100, 1)).rows_loaded_mean).toBe(100);
  });

  test('with identical runs give a small change a small z-score, and silence a large one', async () => {
    const past = await history(runs(1000, 1000, 1000, 1000, 1000));
    expect((await past.of(1005, 1)).rows_loaded_zscore).toBe(0.5);
    expect((await past.of(0, 1)).rows_loaded_zscore).toBe(-100);
    const small = await history(runs(2, 2, 2, 2, 2));
    expect((await small.of(0, 1)).rows_loaded_zscore).toBe(-2);
  });
});
