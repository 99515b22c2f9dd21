import { afterAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { glewlwydMissing, startGlewlwyd } from '../support/glewlwyd.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

/** An application of Debian with an API for its users: search, create, update and delete, each with rules of its own. */
const { users } = await startGlewlwyd('http://127.0.0.1:1/callback');
const service = await testDeps({
  role: 'worker',
  config: glewlwydMissing ? {} : { EGRESS_ALLOW: [new URL(users.url).host] },
});
const { call } = testApi(service);
const make = makerOf(call);
const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await sql.end();
  await database.drop();
});

const DEFINITION = `
objects:
  - table: people
    search: { path: "/{{ key.username }}" }
    create:
      path: /
      body: { username: "{{ row.username }}", name: "{{ row.name }}", email: "{{ row.email }}", enabled: "{{ row.active }}", scope: [g_profile] }
    update:
      method: PUT
      path: "/{{ found.username }}"
      body: { name: "{{ row.name }}", email: "{{ row.email }}", enabled: "{{ row.active }}", scope: [g_profile] }
    delete: { path: "/{{ key.username }}" }
`;

const run = async (id: string) => {
  await call('POST', `/connections/${id}/run`);
  let ended: Record<string, any> = {};
  await until(async () => {
    [ended] = (await call('GET', `/connections/${id}/runs`)).body;
    return ended.finished_at !== null;
  });
  return ended;
};
const asked = (path: string, init: RequestInit = {}) =>
  fetch(`${users.url}${path}`, { ...init, headers: { authorization: users.authorization } });
/** What the application has, by user name, without its own administrator. */
const stored = async (): Promise<object[]> => {
  const found = (await (await asked('/?limit=1000')).json()) as Record<string, any>[];
  return found
    .filter(({ username }) => username !== 'admin')
    .map(({ username, name, email, enabled }) => ({ username, name, email, active: enabled }))
    .toSorted((a, b) => (a.username < b.username ? -1 : 1));
};
const wanted = async (): Promise<object[]> => [
  ...(await sql`select username, name, email, active from people where length(username) <= 128 order by username collate "C"`),
];
const PEOPLE = 60;

describe.skipIf(glewlwydMissing !== null)('an application of Debian', () => {
  test('has the people of a table after each run, which sends what differs', async () => {
    await sql`create table people (username text primary key, name text, email text, active boolean)`;
    await sql`insert into people select 'user' || lpad(i::text, 3, '0'), 'Zoë "' || i || '" O''Neil ☃ 🎉', 'u' || i || '+x@example.org', i % 3 > 0
      from generate_series(1, ${PEOPLE}::int) i`;
    // Someone created this user before.
    await asked('/', { method: 'POST', body: JSON.stringify({ username: 'user007', scope: [] }) });
    const source = await make.connector('source', 'postgres', postgresParameters(database.url));
    const destination = await make.connector('destination', 'http', {
      url: users.url,
      definition: DEFINITION,
      authentication: 'api_key_header',
      key_name: 'Authorization',
      api_key: users.authorization,
      check_method: 'GET',
    });
    expect(destination).toMatchObject({ status: 'active' });
    const connection = await make.connection({
      source_id: source.id,
      destination_id: destination.id,
      streams: [{ name: 'people', sync_mode: 'full_refresh', destination_sync_mode: 'append_dedup' }],
    });
    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_loaded: PEOPLE, rows_rejected: 0 });
    expect(await stored()).toEqual(await wanted());

    expect(await run(connection.id)).toMatchObject({ status: 'succeeded', rows_read: PEOPLE, rows_loaded: 0 });

    await sql`update people set name = 'changed', active = not active where username in ('user002', 'user003', 'user004')`;
    await sql`delete from people where username in ('user010', 'user011', 'user012')`;
    await sql`insert into people values ('new/er & co', 'New', 'new@example.org', true), (repeat('x', 129), 'Too long', 'x@example.org', true)`;
    // Deleted in the application meanwhile: one that the table has changed, and one that it has no longer.
    for (const username of ['user003', 'user011']) await asked(`/${username}`, { method: 'DELETE' });
    const second = await run(connection.id);
    expect(second).toMatchObject({ status: 'succeeded', rows_loaded: 4, rows_rejected: 1 });
    expect(await stored()).toEqual(await wanted());
    const runs = `/connections/${connection.id}/runs/${second.id}/stream_runs`;
    const [stream] = (await call('GET', runs)).body;
    expect(stream).toMatchObject({ rows_deleted: 3, rows_updated: 3 });
    expect((await call('GET', `${runs}/${stream.id}/rejected_rows`)).body).toMatchObject([
      { operation: 'insert', status: 400, message: expect.stringContaining('maximum 128 characters') },
    ]);
  }, 120_000);
});
