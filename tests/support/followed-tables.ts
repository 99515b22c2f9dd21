import { afterAll, expect } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import type { Call } from './api.ts';
import { createPlainDatabase, type TestDeps } from './database.ts';
import { getStreamRuns, runEnded } from './pipeline.ts';
import { logServer } from './postgres.ts';
import { makerOf, postgresParameters, uniqueName } from './resources.ts';
import { until } from './until.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
type Json = any;

/** A worker, and connections created over the API that read tables of one PostgreSQL database by CDC into another. */
export async function followedTables(service: TestDeps, call: Call) {
  const worker = await startWorker(service.deps);
  const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
  const source = postgres(from.url, { max: 2, onnotice: () => {} });
  const target = postgres(to.url, { max: 2, onnotice: () => {} });
  /** The replication slots of a server are for all tests that run on it. */
  const dropSlots = async () => {
    const slots = await source`select slot_name from pg_replication_slots where database = current_database()`;
    for (const { slot_name } of slots) await source`select pg_drop_replication_slot(${slot_name})`;
  };
  afterAll(async () => {
    await worker.stop();
    await dropSlots();
    await Promise.all([source.end(), target.end()]);
    await Promise.all([from.drop(), to.drop()]);
  });
  const make = makerOf(call);
  const show = async (side: string, id: string): Promise<Json> =>
    (await call('GET', `/account_connectors/${side}/${id}`)).body;
  const destination = async (): Promise<string> =>
    (await make.connector('destination', 'postgres', postgresParameters(to.url))).id;

  /** A CDC source with discovered streams. */
  async function logSource(more: { url?: string; ssh_tunnel?: object; schemas?: string[] } = {}): Promise<string> {
    const { status, body } = await call('POST', '/account_connectors', {
      name: uniqueName('log'),
      connector_type: 'source',
      connector_name: 'postgres',
      parameters: {
        ...postgresParameters(more.url ?? from.url),
        replication: 'logical',
        ...(more.schemas && { schemas: more.schemas }),
      },
      ...(more.ssh_tunnel && { ssh_tunnel: more.ssh_tunnel }),
    });
    expect(status).toBe(201);
    await until(async () => (await show('source', body.id)).catalog_status === 'ready');
    return body.id;
  }

  const follow = async (
    table: string,
    more: { source_id?: string; stream?: object; connection?: object } = {},
  ): Promise<Json> =>
    make.connection({
      source_id: more.source_id ?? (await logSource()),
      destination_id: await destination(),
      streams: [{ name: table, ...more.stream }],
      ...more.connection,
    });

  async function run(connection: Json, body?: object) {
    const started = await call('POST', `/connections/${connection.id}/run`, body);
    expect(started.status).toBe(200);
    const ended = await runEnded(service, started.body, 90_000);
    const [stream] = (await getStreamRuns(service, started.body)).filter(({ status }) => status !== 'skipped');
    return { status: ended.status, stream: stream! };
  }

  const update = (connection: Json, body: object) => call('POST', `/connections/${connection.id}`, body);
  const streamOf = async (connection: Json): Promise<Json> => ({
    ...(await call('GET', `/connections/${connection.id}`)).body.streams.find((one: Json) => one.selected),
    connection_id: connection.id,
  });
  const reset = async (connection: Json) =>
    update(connection, { reset_cursor: [{ stream_id: (await streamOf(connection)).id, value: null }] });
  return { from, to, source, target, dropSlots, make, show, logSource, follow, run, update, streamOf, reset };
}
