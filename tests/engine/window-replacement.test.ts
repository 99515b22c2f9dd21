import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, connectionRuns, connections } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { LIVE_RUN } from '../../server/pipeline/run-states.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { getStreamRuns, makePipeline } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
const { db } = service.deps;
const { call } = testApi(service);
const target = await createPlainDatabase();
const sql = postgres(target.url, { max: 2, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await target.drop();
});

type Created = Awaited<ReturnType<typeof makePipeline>>;
type Choice = NonNullable<Parameters<typeof makePipeline>[1]['stream']>;
let counter = 0;

/** Ten rows a day from 2025-01-01 to 2025-01-04 in a separate table, with a key and a date cursor. */
async function pipeline(stream: Choice = {}) {
  counter += 1;
  const table = `source_${counter}`;
  await sql.unsafe(`create schema if not exists src`);
  await sql.unsafe(`create table src.${table} as select n id, 'old' note,
    '2025-01-01'::timestamptz + n * interval '144 minutes' updated_at from generate_series(0, 39) n`);
  await sql.unsafe(`alter table src.${table} add primary key (id)`);
  const created = await makePipeline(service, {
    source: { name: 'postgres', parameters: { ...postgresParameters(target.url), schemas: ['src'] } },
    destination: { name: 'postgres', parameters: postgresParameters(target.url) },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append', ...stream },
    only: [table],
  });
  return { ...created, table };
}

/** Starts a custom run and returns its ended runs. */
async function load({ connection }: Created, body: object = {}) {
  const days = { start_date: '2025-01-02', end_date: '2025-01-03', split: { unit: 'day', size: 1 } };
  const { status, body: first } = await call('POST', `/connections/${connection.id}/run`, { ...days, ...body });
  if (status !== 200) throw new Error(JSON.stringify(first));
  const runs = () => db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, connection.id));
  const over = async () => (await runs()).every((run) => !LIVE_RUN.includes(run.status));
  await until(over);
  return (await runs()).toSorted((a, b) => a.number - b.number);
}
const content = async (table: string) =>
  (await sql.unsafe(`select id, note from public.${table} order by id, note`)).map((row) => `${row.id} ${row.note}`);
const codes = (runs: Awaited<ReturnType<typeof load>>) => runs.flatMap((run) => run.warnings.map(({ code }) => code));

describe('a backfill window of an appended stream', () => {
  test('replaces the rows in the window on a rerun and leaves the rest, without an index', async () => {
    const created = await pipeline();
    const days = { start_date: '2025-01-01', end_date: '2025-01-04' };
    const first = await load(created, { ...days, split: { unit: 'none', size: 1 } });
    expect(first).toMatchObject([{ status: 'succeeded', warnings: [{ code: 'replaces_window' }] }]);
    await sql.unsafe(`update src.${created.table} set note = 'new'`);
    await sql.unsafe(`delete from src.${created.table} where id in (9, 10)`);
    for (const _ of [1, 2]) {
      const runs = await load(created);
      expect(new Set(runs.map((run) => run.status))).toEqual(new Set(['succeeded']));
      const [part] = await getStreamRuns(service, runs.at(-2)!.id);
      expect(part).toMatchObject({ destination_sync_mode: 'append', rows_loaded: 9 });
      const note = (id: number) => (id >= 10 && id < 30 ? 'new' : 'old');
      const ids = [...Array(40).keys()].filter((id) => id !== 10);
      expect(await content(created.table)).toEqual(ids.map((id) => `${id} ${note(id)}`).sort(byId));
    }
    expect([
      ...(await sql`select indexname from pg_indexes where schemaname = 'public' and tablename = ${created.table}`),
    ]).toEqual([]);
    // A row changed since then is loaded again, as always in an appended stream.
    await sql.unsafe(`update src.${created.table} set updated_at = '2025-02-01', note = 'changed' where id = 1`);
    expect((await load(created, { start_date: '2025-02-01', end_date: '2025-02-01' })).at(-1)?.status).toBe(
      'succeeded',
    );
    expect((await content(created.table)).slice(1, 3)).toEqual(['1 changed', '1 old']);
  });

  test('loads in parallel chunks, also into a table that the chunks create', async () => {
    const created = await pipeline();
    const runs = await load(created, { start_date: '2025-01-01', end_date: '2025-01-04', max_parallel_runs: 4 });
    expect(runs.map((run) => run.status)).toEqual(Array(4).fill('succeeded'));
    expect((await content(created.table)).length).toBe(40);
  });

  test('reports rows it cannot replace and deletes nothing: a cursor that is masked, deselected or without a column of its type', async () => {
    const choice = {
      path: ['updated_at'],
      selected: true,
      destination_name: null,
      destination_type: null,
      masking: 'none',
    };
    for (const odd of [{ masking: 'hash_sha256' }, { selected: false }, { destination_type: 'string' }]) {
      const created = await pipeline({ fields: [{ ...choice, ...odd }] });
      for (const _ of [1, 2]) expect(new Set(codes(await load(created)))).toEqual(new Set(['may_duplicate_rows']));
      expect((await content(created.table)).length).toBe(40);
    }
    const renamed = await pipeline({ fields: [{ ...choice, destination_name: 'changed at' }] });
    for (const _ of [1, 2]) expect(new Set(codes(await load(renamed)))).toEqual(new Set(['replaces_window']));
    expect((await content(renamed.table)).length).toBe(20);
  });

  test('deletes nothing from a table that another connection may also write', async () => {
    const created = await pipeline();
    const other = await pipeline({ destination_table: created.table });
    await db
      .update(connections)
      .set({ destination_id: created.connection.destination_id })
      .where(eq(connections.id, other.connection.id));
    for (const _ of [1, 2]) expect(new Set(codes(await load(created)))).toEqual(new Set(['may_duplicate_rows']));
    expect((await content(created.table)).length).toBe(40);
  });

  test('deletes nothing in a run from the live cursor, which reads only part of the window', async () => {
    const created = await pipeline({ state: { cursor: '2025-01-03 12:00:00+00' } });
    for (const _ of [1, 2]) {
      const runs = await load(created, { mode: 'incremental', split: { unit: 'none', size: 1 } });
      expect(new Set(codes(runs))).toEqual(new Set(['may_duplicate_rows']));
    }
    expect((await content(created.table)).length).toBe(10);
  });

  test('saves no state before its end, since nothing is committed until then', async () => {
    // A day is 72 MB: more than one commit of a plain run.
    const created = await makePipeline(service, {
      source: { name: 'sample', parameters: { rows: 1440, value_bytes: 50_000, fault: 'config', fault_at_row: 1400 } },
      destination: { name: 'postgres', parameters: postgresParameters(target.url) },
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append' },
      connection: { table_prefix: 'large_' },
    });
    const [run] = await load(created, { start_date: '2025-01-01', end_date: '2025-01-01' });
    const [part] = await getStreamRuns(service, run!.id);
    expect(part).toMatchObject({
      status: 'failed',
      rows_read: 1400,
      rows_loaded: 0,
      cursor_after: null,
      state_after: null,
    });
    expect([...(await sql`select from large_stream_1`)]).toEqual([]);
  });

  test('is appended with a warning where the destination cannot replace rows', async () => {
    const created = await pipeline();
    await db
      .update(accountConnectors)
      .set({ connector_name: 'sample', parameters: {} })
      .where(eq(accountConnectors.id, created.destination.id));
    expect(new Set(codes(await load(created)))).toEqual(new Set(['may_duplicate_rows']));
  });
});

function byId(a: string, b: string) {
  return Number.parseInt(a, 10) - Number.parseInt(b, 10);
}
