import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, type TestDatabase, testDeps } from '../support/database.ts';
import { makePipeline, networkLog, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';

const service = await testDeps({ role: 'worker' });
const worker = await startWorker(service.deps);
const databases: TestDatabase[] = [];
const sides: Record<'source' | 'destination', postgres.Sql> = {} as never;
let pipeline: Pipeline;

beforeAll(async () => {
  for (const side of ['source', 'destination'] as const) {
    const database = await createPlainDatabase();
    databases.push(database);
    sides[side] = postgres(database.url, { max: 1, onnotice: () => {} });
  }
  await sides.source`create table ten as select i as id, 'x' || i as note from generate_series(1, 10) i`;
  const [from, to] = databases as [TestDatabase, TestDatabase];
  pipeline = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(from.url) },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    stream: { destination_sync_mode: 'overwrite' },
  });
});
afterAll(async () => {
  await worker.stop();
  await Promise.all(Object.values(sides).map((sql) => sql.end()));
  for (const database of databases) await database.drop();
});

/** Requests of a run by side. */
async function requestsOf(run_id: string) {
  const entries = await networkLog(service, run_id);
  const of = (side: string) => entries.filter((entry) => entry.connector_type === side);
  return { source: of('source'), destination: of('destination') };
}

test('the next run logs in nowhere, sends few messages, and finds sessions as new', async () => {
  const first = await runEnded(service, await pipeline.start());
  expect(first).toMatchObject({ status: 'succeeded' });
  const login = await requestsOf(first.id);
  const connects = (entries: Record<string, any>[]) => entries.filter(({ request }) => request.method === 'CONNECT');
  // The description, the estimate and the rows share one connection.
  expect([connects(login.source).length, connects(login.destination).length]).toEqual([1, 1]);
  await sides.source`insert into ten values (11, 'new')`;
  const second = await runEnded(service, await pipeline.start());
  expect(second).toMatchObject({ status: 'succeeded' });
  const { source, destination } = await requestsOf(second.id);
  expect(connects([...source, ...destination])).toEqual([]);
  expect(source.length).toBeLessThanOrEqual(5);
  expect(destination.length).toBeLessThanOrEqual(12);
  expect(await sides.destination`select count(*)::int as rows from ten`).toEqual([{ rows: 11 }] as never);
});

test('a run that fails in mid-transaction leaves its locks and its transaction to nobody', async () => {
  await sides.destination`create view kept as select id from ten`;
  await sides.destination`alter table ten add constraint small check (id < 12)`;
  await sides.source`insert into ten values (12, 'too large')`;
  expect(await runEnded(service, await pipeline.start())).toMatchObject({ status: 'failed' });
  const open = await sides.destination`select query from pg_stat_activity
    where datname = current_database() and application_name = 'data-pipelines' and xact_start is not null`;
  expect(open).toEqual([] as never);
  await sides.destination`alter table ten drop constraint small`;
  expect(await runEnded(service, await pipeline.start())).toMatchObject({ status: 'succeeded' });
  expect(await sides.destination`select count(*)::int as rows from kept`).toEqual([{ rows: 12 }] as never);
});
