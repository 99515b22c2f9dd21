import { afterAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { refreshCatalog } from '../../server/catalog/discover.ts';
import { type Actor, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const server = startHttpServer();
const egress = { EGRESS_ALLOW: new URL(server.url).host };
const service = await testDeps({ config: { EGRESS_ALLOW: [egress.EGRESS_ALLOW] } });
const database = await createPlainDatabase();
afterAll(async () => {
  await database.drop();
  await server.close();
});

/** A service with jobs. */
function serveJobs() {
  const state = { created: 0, cancelled: [] as string[], polled: [] as string[], isBusy: false };
  server.on('/exports', () => {
    state.created += 1;
    return Response.json({ id: `job-${state.created}` });
  });
  server.on('/exports/*', ({ method, path }) => {
    const id = path.slice('/exports/'.length);
    if (method === 'DELETE') state.cancelled.push(id);
    else state.polled.push(id);
    return Response.json({ status: state.isBusy ? 'running' : 'done' });
  });
  server.on('/files/*', () => Response.json([{ id: 1, name: 'one' }]));
  return state;
}

const schema = { properties: { id: { type: 'integer' }, name: { type: 'string' } } };
const pipelineWith = (stream: object) =>
  makePipeline(service, {
    source: {
      name: 'http_api',
      parameters: {
        definition: JSON.stringify({
          base_url: server.url,
          streams: [
            {
              name: 'orders',
              request: { method: 'POST', path: '/exports' },
              job: {
                poll: { path: '/exports/{{ job.id }}' },
                completed: ['done'],
                interval_seconds: 0.05,
                max_interval_seconds: 0.05,
                download: { path: '/files/{{ job.id }}' },
                cancel: { method: 'DELETE', path: '/exports/{{ job.id }}' },
              },
              ...stream,
            },
          ],
        }),
      },
    },
    destination: { name: 'postgres', parameters: postgresParameters(database.url) },
  });

test('a job whose worker was killed is cancelled by the next attempt, which creates its own', async () => {
  const jobs = serveJobs();
  const pipeline = await pipelineWith({ schema });
  expect(jobs.created).toBe(0);
  jobs.isBusy = true;
  const first = spawnWorker(service, egress);
  const run_id = await pipeline.start();
  await until(() => jobs.polled.length > 0);
  expect((await getStreamRuns(service, run_id))[0]).toMatchObject({
    source_jobs: [{ stream: 'orders', id: 'job-1' }],
  });
  first.kill('SIGKILL');
  await first.exited;
  jobs.isBusy = false;
  const second = spawnWorker(service, egress);
  expect(await runEnded(service, run_id)).toMatchObject({ status: 'succeeded' });
  second.kill('SIGKILL');
  expect(jobs).toMatchObject({ created: 2, cancelled: ['job-1'] });
  expect((await getStreamRuns(service, run_id))[0]).toMatchObject({ attempt: 2, rows_loaded: 1, source_jobs: [] });
}, 120_000);

test('a discovery by the service itself creates no job for columns that are known', async () => {
  const jobs = serveJobs();
  const { source } = await pipelineWith({});
  expect(jobs.created).toBe(1);
  const discover = async (actor: Actor) => {
    const [row] = await service.deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, source.id));
    return await refreshCatalog(service.deps, row!, { actor });
  };
  expect(await discover(SYSTEM_ACTOR)).toMatchObject({ fields_added: [], breaking: false });
  expect(jobs.created).toBe(1);
  server.on('/files/*', () => Response.json([{ id: 1, name: 'one', added: true }]));
  expect(await discover({ type: 'user', id: null, name: null })).toMatchObject({
    fields_added: [expect.stringContaining('added')],
  });
  expect(jobs.created).toBe(2);
});
