import { expect } from 'bun:test';
import type { Call } from './api.ts';
import type { TestDeps } from './database.ts';
import { getStreamRuns, runEnded } from './pipeline.ts';
import { makerOf, postgresParameters, uniqueName } from './resources.ts';
import { until } from './until.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
type Json = any;

/** Connections created over the API that read tables of one PostgreSQL database by CDC into another. */
export function followedTables(service: TestDeps, { call, from, to }: { call: Call; from: string; to: string }) {
  const make = makerOf(call);
  const show = async (side: string, id: string): Promise<Json> =>
    (await call('GET', `/account_connectors/${side}/${id}`)).body;
  const destination = async (): Promise<string> =>
    (await make.connector('destination', 'postgres', postgresParameters(to))).id;

  /** A CDC source with discovered streams. */
  async function logSource(more: { url?: string; ssh_tunnel?: object; schemas?: string[] } = {}): Promise<string> {
    const { status, body } = await call('POST', '/account_connectors', {
      name: uniqueName('log'),
      connector_type: 'source',
      connector_name: 'postgres',
      parameters: {
        ...postgresParameters(more.url ?? from),
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
  return { make, show, logSource, follow, run, update, streamOf, reset };
}
