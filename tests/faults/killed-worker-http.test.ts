import { afterAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { getStreamRuns, runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const server = startHttpServer();
const egress = { EGRESS_ALLOW: new URL(server.url).host };
const service = await testDeps({ config: { EGRESS_ALLOW: [egress.EGRESS_ALLOW] } });
const { call } = testApi(service);
const make = makerOf(call);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await sql.end();
  await database.drop();
  await server.close();
});

const ROWS = 400;
const AT_KILL = 7;
const DATASET = {
  name: 'paying',
  sql: "select id, email, changed from users where plan <> 'free' -- those who pay\n;",
};
const MAPPING = [
  { source_field: 'id', destination_field: 'external_id', is_match_key: true },
  { source_field: 'email', destination_field: 'email', transform: 'lowercase' },
];

/** A worker in a separate process does all background work, including checks and discoveries. */
test.each([
  ['full_refresh', 'append'],
  ['full_refresh', 'append_dedup'],
  ['incremental', 'append'],
] as const)(
  'a worker killed while it sends rows to an application (%s, %s): with idempotency keys each row counts once',
  async (sync_mode, destination_sync_mode) => {
    await sql`drop table if exists users`;
    await sql`create table users as select i::bigint id, 'User' || i || '@Example.com' email, case when i % 2 = 0 then 'free' else 'paid' end plan,
      timestamptz '2026-01-01+00' + i * interval '1 second' changed from generate_series(1, ${2 * ROWS}) i`;
    const path = `/crm/${sync_mode}-${destination_sync_mode}`;
    const taken = new Map<string, { external_id: number; email: string }[]>();
    let calls = 0;
    const held = Promise.withResolvers<void>();
    server.on(path, async ({ method, headers, body }) => {
      if (method !== 'POST') return Response.json({});
      calls += 1;
      const key = headers['idempotency-key'] ?? '';
      const rows = JSON.parse(body);
      // A repeated key must come with the same rows.
      if (taken.has(key)) expect(taken.get(key)).toEqual(rows);
      taken.set(key, rows);
      // Accepted, but the worker dies before it gets the response.
      if (calls === AT_KILL) await held.promise;
      return Response.json({});
    });
    const first = spawnWorker(service, egress);
    const source = await call('POST', '/account_connectors', {
      name: uniqueName('pg'),
      connector_type: 'source',
      connector_name: 'postgres',
      parameters: postgresParameters(database.url),
      datasets: [DATASET],
    });
    expect(source.body).toMatchObject({ status: 'active' });
    const destination = await make.connector('destination', 'http', { url: `${server.url}${path}`, batch_rows: 10 });
    const cursor = sync_mode === 'incremental' ? { cursor_field: ['changed'] } : {};
    const streams = [{ name: 'paying', sync_mode, destination_sync_mode, mapping: MAPPING, ...cursor }];
    const connection = await make.connection({ source_id: source.body.id, destination_id: destination.id, streams });
    expect(connection.kind).toBe('reverse_etl');
    const { body: id } = await call('POST', `/connections/${connection.id}/run`);
    await until(() => calls >= AT_KILL, { timeout_ms: 30_000 });
    first.kill('SIGKILL');
    await first.exited;
    held.resolve();
    const second = spawnWorker(service, egress);
    expect(await runEnded(service, String(id), 60_000)).toMatchObject({ status: 'succeeded' });
    second.kill('SIGKILL');
    const [sent] = await getStreamRuns(service, String(id));
    expect(sent).toMatchObject({ rows_loaded: ROWS });
    // A worker that gets no processor for long gives up its lease, which takes an attempt more.
    expect(sent!.attempt).toBeGreaterThanOrEqual(2);
    const got = [...taken.values()].flat();
    expect(got.map(({ external_id }) => external_id).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: ROWS }, (_, at) => 2 * at + 1),
    );
    expect(got[0]).toEqual({ external_id: 1, email: 'user1@example.com' });
    // A batch really came twice: the one that was sent and not recorded. Only its key shows it.
    expect(calls).toBeGreaterThan(taken.size);
  },
  120_000,
);
