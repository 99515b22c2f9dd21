import { afterAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { connectionStreams } from '../../db/schema/index.ts';
import { FLUSHES_ALONE } from '../../server/connectors/postgres/write/load-transaction.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
import { closeGate } from '../support/gate.ts';
import { type KillablePostgres, onBank, startKillablePostgres } from '../support/killable-postgres.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

/** What a commit does not flush stays in the memory of the server for a while. */
const LATE = ['wal_writer_delay=10s', 'wal_writer_flush_after=1GB', 'wal_buffers=16MB'];
const ROWS = 12_000;

// A commit of every batch.
const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 1, CHECKPOINT_KB: 1 } });
const [bank, warehouse] = await Promise.all([startKillablePostgres(), startKillablePostgres(LATE)]);
const worker = await startWorker(service.deps);
afterAll(() => worker.stop());

test('commits that a crash of the destination undoes are not recorded, and are repeated', async () => {
  await onBank(bank, (sql) => sql`create table payments (id int primary key, filler text)`);
  const pipeline = await makePipeline(service, {
    source: { name: 'postgres', parameters: { ...postgresParameters(bank.url('bank')), replication: 'logical' } },
    destination: { name: 'postgres', parameters: postgresParameters(warehouse.url('bank')) },
    stream: {
      name: 'payments',
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      primary_key: [['id']],
    },
  });
  expect((await runEnded(service, await pipeline.start())).status).toBe('succeeded');
  for (let from = 1; from <= ROWS; from += 100) {
    const rows = `generate_series(${from}, ${from + 99}) g`;
    await onBank(bank, (sql) => sql.unsafe(`insert into payments select g, repeat(g::text, 80) from ${rows}`));
  }
  const content = (server: KillablePostgres) =>
    onBank(server, (sql) => sql`select count(*)::int, sum(hashtext(id || filler)) from payments`).then((rows) => [
      ...rows,
    ]);
  const committed = () =>
    onBank(warehouse, async (sql) => {
      const [row] = await sql`select state ->> 'cursor' as cursor, counts from _pipeline_state`;
      return { cursor: row!.cursor as string, rows: (row!.counts as { rows_loaded: number }).rows_loaded };
    });
  const recorded = async () => {
    const { db } = service.deps;
    const [stream] = await db
      .select()
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, pipeline.connection.id));
    return stream!.state!.cursor!;
  };
  const before = await recorded();
  const gate = await closeGate(warehouse.url('bank'), 'payments', `new.id = ${(ROWS * 3) / 4}`);
  const id = await pipeline.start();
  await gate.reached();
  const seen = await committed();
  // Of a heartbeat. What may be recorded is, in this time.
  await until(async () => (await getStreamRuns(service, id))[0]!.rows_loaded >= seen.rows);
  expect((await recorded()) > before).toBe(true);
  await warehouse.restart();
  const survived = await committed();
  expect(survived.cursor < seen.cursor).toBe(true);
  expect((await recorded()) <= survived.cursor).toBe(true);
  await gate.open();
  const { status, error } = await runEnded(service, id, 90_000);
  expect({ status, error }).toEqual({ status: 'succeeded', error: null });
  const [stream] = await getStreamRuns(service, id);
  expect(stream).toMatchObject({ attempt: 2, rows_loaded: ROWS, warnings: [] });
  expect(stream!.rows_read).toBeGreaterThanOrEqual(ROWS);
  expect(await content(warehouse)).toEqual(await content(bank));
});

test('commits wait where the server has them wait for more than its disk, or for nothing', async () => {
  await onBank(warehouse, async (sql) => {
    const flushesAlone = async (setting: string) => {
      await sql.unsafe(`set synchronous_commit = ${setting}`);
      return Object.values((await sql.unsafe(`select ${FLUSHES_ALONE}`))[0]!)[0] as boolean;
    };
    const expected = { on: true, remote_apply: true, remote_write: true, local: true, off: false };
    const found = async () => {
      const answers: Record<string, boolean> = {};
      for (const setting of Object.keys(expected)) answers[setting] = await flushesAlone(setting);
      return answers;
    };
    expect(await found()).toEqual(expected);
    await sql`alter system set synchronous_standby_names = 'nobody'`;
    await sql`select pg_reload_conf()`;
    await until(async () => (await sql`show synchronous_standby_names`)[0]!.synchronous_standby_names === 'nobody');
    expect(await found()).toEqual({ ...expected, on: false, remote_apply: false, remote_write: false });
  });
});
