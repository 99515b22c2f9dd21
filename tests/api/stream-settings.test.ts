import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { connectionStreams } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { testDeps } from '../support/database.ts';
import { mariaDbMissing, testMariaDb } from '../support/mariadb.ts';
import { getStreamRuns, runEnded } from '../support/pipeline.ts';
import { makerOf, uniqueName } from '../support/resources.ts';
import { rpc } from '../support/rpc.ts';

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { deps } = service;
const api = testApi(service);
const { call } = api;
const make = makerOf(call);
const worker = await startWorker(deps);
const app = createApp(deps).listen({ hostname: '127.0.0.1', port: 0 });
const cli = commandLine({ url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key });
const files = join(deps.config.DATA_DIR, 'files');
await mkdir(files, { recursive: true });
afterAll(async () => {
  await app.server?.stop(true);
  await worker.stop();
});

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;
const sample = await make.source({ rows: 10 });
const shop = (await make.source({ rows: 10, streams: 2 })).id as string;
const duckdb = async () =>
  (await make.connector('destination', 'duckdb', { path: `${uniqueName('shop').replace(' ', '-')}.duckdb` }))
    .id as string;
const ends = async () => ({ source_id: sample.id as string, destination_id: await duckdb() });
const create = async (body: object): Promise<Json> => {
  const { status, body: answer } = await call('POST', '/connections', { name: uniqueName('connection'), ...body });
  return { ...answer, http: status };
};
const stream = (settings: object) => [{ name: 'stream_1', ...settings }];
const merged = { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' };

describe('settings that would lose or change rows are refused with their place', () => {
  const cases: [code: string, field: string, streams: object[]][] = [
    [
      'type_incompatible',
      'streams.0.fields.0.destination_type',
      stream({ fields: [{ path: ['name'], destination_type: 'json' }] }),
    ],
    ['invalid_filter', 'streams.0.filters.0.value', stream({ filters: [{ field: 'id', operator: 'eq' }] })],
    [
      'invalid_filter',
      'streams.0.filters.0.value',
      stream({ filters: [{ field: 'id', operator: 'between', value: 5 }] }),
    ],
    [
      'invalid_filter',
      'streams.0.filters.0.value',
      stream({ filters: [{ field: 'id', operator: 'gt', value: 'abc' }] }),
    ],
    ['unfit_mask', 'streams.0.fields.0.masking', stream({ ...merged, fields: [{ path: ['id'], masking: 'redact' }] })],
    [
      'duplicate_field',
      'streams.0.fields.1.path',
      stream({ fields: [{ path: ['name'] }, { path: ['name'], masking: 'redact' }] }),
    ],
    [
      'duplicate_destination_column',
      'streams.0.fields.0.destination_name',
      stream({ fields: [{ path: ['name'], destination_name: 'ID' }] }),
    ],
  ];
  test.each(cases)('%s at %s', async (code, field, streams) => {
    const into = await ends();
    const refused = await create({ ...into, streams });
    expect(refused).toMatchObject({ http: 400, code, field, stream_name: 'stream_1' });
    expect(refused.findings).toMatchObject([{ code, field, stream_name: 'stream_1' }]);
    expect(refused.detail).toBe(`stream_1: ${refused.findings[0].message}`);
    // The same from an update, over tRPC, and from the check that the wizard shows.
    const { id } = await create(into);
    const update = await call('POST', `/connections/${id}`, { streams });
    expect([update.status, update.body.code, update.body.field]).toEqual([400, code, field]);
    const over = await rpc(call, 'connections.create', { name: 'x', ...into, table_prefix: 'other_', streams });
    expect(over.error).toMatchObject({ code, field, findings: [{ code, field }] });
    const check = await rpc(call, 'connections.check', { ...into, table_prefix: 'other_', streams });
    expect(check.result).toMatchObject([{ code, field, stream_name: 'stream_1' }]);
  });

  test('all findings at once', async () => {
    const filters = [{ field: 'id', operator: 'in', value: [1, 'x'] }];
    const refused = await create({ ...(await ends()), streams: stream({ filters, fields: [{ path: ['gone'] }] }) });
    expect(refused.findings.map(({ field }: Json) => field)).toEqual([
      'streams.0.fields.0.path',
      'streams.0.filters.0.value',
    ]);
  });

  test('a mask in the catalog counts as well', async () => {
    const source = await make.source({ rows: 10 });
    const field_overrides = [{ path: ['id'], masking: 'redact' }];
    const items = [{ name: 'stream_1', field_overrides }];
    const plain = stream({ sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' });
    await create({ source_id: source.id, destination_id: await duckdb(), streams: plain });
    const { status } = await call('POST', `/account_connectors/${source.id}/catalog`, { items });
    expect(status).toBe(200);
    const into = { source_id: source.id, destination_id: await duckdb(), streams: stream(merged) };
    expect(await create(into)).toMatchObject({ code: 'unfit_mask', field: 'streams.0.fields' });
    // The catalog refuses the mask as well once a connection merges by the field.
    const clear = [{ name: 'stream_1', field_overrides: [{ path: ['id'], clear: true }] }];
    await call('POST', `/account_connectors/${source.id}/catalog`, { items: clear });
    const { id } = await create(into);
    const again = await call('POST', `/account_connectors/${source.id}/catalog`, { items });
    expect([again.status, again.body]).toMatchObject([400, { code: 'unfit_mask', connection_ids: [id] }]);
  });

  test('apply names line and column of each setting', async () => {
    const text = `version: 1
sources:
  Shop: { connector: sample, parameters: { rows: 10 } }
destinations:
  Warehouse: { connector: duckdb, parameters: { path: applied.duckdb } }
connections:
  Shop to warehouse:
    source: Shop
    destination: Warehouse
    streams:
      - name: stream_1
        fields:
          - path: [name]
            destination_type: json
        filters:
          - field: id
            operator: between
            value: 5
`;
    writeFileSync(join(cli.folder, 'pipelines.yaml'), text);
    const { code, err } = await cli.run(['apply', '-f', 'pipelines.yaml', '--yes']);
    expect(code).not.toBe(0);
    expect(err).toContain(
      'pipelines.yaml:14:13: stream_1: "name": string cannot be written as json (type_incompatible',
    );
    expect(err).toContain('pipelines.yaml:18:13: stream_1: Filter on id: between takes a list of two values');
  });
});

describe('numbers beyond what JSON keeps', () => {
  const filtered = (value: string) =>
    `{"name":"exact","source_id":"${sample.id}","destination_id":"${sample.id}","streams":[{"name":"stream_1","filters":[{"field":"id","operator":"eq","value":${value}}]}]}`;
  const post = async (path: string, body: string) => {
    const answer = await fetch(`http://127.0.0.1:${app.server!.port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.api_key}`, 'content-type': 'application/json' },
      body,
    });
    return { status: answer.status, body: (await answer.json()) as Json };
  };
  test('are refused where they are parsed, and exact as text', async () => {
    for (const value of ['9007199254740993', '[1, 9007199254740993]', '0.1234567890123456789']) {
      const { status, body } = await post('/connections', filtered(value));
      expect([status, body.detail[0].type]).toEqual([422, 'number_not_exact']);
    }
    const over = await post('/trpc/connections.create', filtered('9007199254740993'));
    expect([over.status, over.body.error.data.detail[0].type]).toEqual([422, 'number_not_exact']);
    const filters = [{ field: 'id', operator: 'eq', value: '9007199254740993' }];
    const { streams } = await create({ ...(await ends()), streams: stream({ filters }) });
    expect(streams[0].filters[0].value).toBe('9007199254740993');
  });
});

describe('tables that several streams write to', () => {
  test('of one connection: by the names of the destination', async () => {
    const streams = [
      { name: 'stream_1', destination_table: 'Orders' },
      { name: 'stream_2', destination_table: 'orders' },
    ];
    const into = { source_id: shop, destination_id: await duckdb() };
    const refused = await create({ ...into, streams });
    expect(refused).toMatchObject({ code: 'duplicate_destination_table', field: 'streams.1.destination_table' });
    const shared = streams.map((one) => ({ ...one, shared_destination_table: true, destination_sync_mode: 'append' }));
    const { http, streams: stored } = await create({ ...into, streams: shared });
    expect([http, stored.map((one: Json) => one.shared_destination_table)]).toEqual([201, [true, true]]);
  });

  test('of two connections: unless the stream says that it shares, or the other is gone', async () => {
    const into = await ends();
    const first = await create(into);
    const refused = await create(into);
    expect(refused).toMatchObject({
      http: 400,
      code: 'duplicate_destination_table',
      connection_id: first.id,
      destination_table: 'stream_1',
    });
    expect(refused.detail).toContain(first.name);
    expect((await create({ ...into, table_prefix: 'other_' })).http).toBe(201);
    expect((await create({ ...into, destination_schema: 'other' })).http).toBe(201);
    const shared = await create({ ...into, streams: stream({ shared_destination_table: true }) });
    expect(shared.http).toBe(201);
    await call('DELETE', `/connections/${shared.id}`);
    await call('DELETE', `/connections/${first.id}`);
    expect((await create(into)).http).toBe(201);
  });

  test('a connector of its own to the same database is the same place', async () => {
    const path = 'same.duckdb';
    const { id } = await make.connector('destination', 'duckdb', { path });
    const again = await make.connector('destination', 'duckdb', { path: `./${path}`, schema: 'MAIN' });
    await create({ source_id: sample.id, destination_id: id });
    const refused = await create({ source_id: sample.id, destination_id: again.id });
    expect(refused.code).toBe('duplicate_destination_table');
  });

  test('an update of the prefix or schema is checked as well', async () => {
    const into = await ends();
    await create(into);
    const { id } = await create({ ...into, table_prefix: 'new_' });
    const update = await call('POST', `/connections/${id}`, { table_prefix: '' });
    expect([update.status, update.body.code]).toEqual([400, 'duplicate_destination_table']);
    expect((await call('POST', `/connections/${id}`, { name: uniqueName('renamed') })).status).toBe(200);
  });

  test('a changed prefix or name frees the table before it and takes the one after it, whoever writes', async () => {
    const into = await ends();
    const code = async (table_prefix: string, destination_table: string | null = null) =>
      (await create({ ...into, table_prefix, streams: stream({ destination_table }) })).code;
    const { id } = await create({ ...into, table_prefix: 'Old_' });
    expect(await code('oLD_')).toBe('duplicate_destination_table');
    await call('POST', `/connections/${id}`, { table_prefix: 'new_' });
    expect(await code('new_')).toBe('duplicate_destination_table');
    expect(await code('old_')).toBeUndefined();
    // As processes of the version before do, which do not know the column.
    await deps.db.execute(sql`update connection_streams set destination_table = 'Named' where connection_id = ${id}`);
    expect(await code('', 'new_named')).toBe('duplicate_destination_table');
    expect(await code('new_')).toBeUndefined();
    await deps.db.execute(sql`update connection_streams set selected = false where connection_id = ${id}`);
    expect(await code('', 'new_named')).toBeUndefined();
  });

  test('of ten connections that are created at once, one takes the table', async () => {
    const into = await ends();
    const answers = await Promise.all(Array.from({ length: 10 }, () => create(into)));
    expect(answers.filter(({ http }) => http === 201)).toHaveLength(1);
    expect(answers.filter(({ code }) => code === 'duplicate_destination_table')).toHaveLength(9);
  });
});

describe('cursors in collations that treat different texts as equal', () => {
  async function expectUnfit(connector: string, parameters: object, destination_id?: string) {
    const { id: source_id } = await make.connector('source', connector, parameters);
    const into = { source_id, destination_id: destination_id ?? (await duckdb()) };
    const by = (cursor: string) => [
      { name: 'codes', sync_mode: 'incremental', destination_sync_mode: 'append', cursor_field: [cursor] },
    ];
    const refused = await create({ ...into, streams: by('folded') });
    expect(refused).toMatchObject({ code: 'unfit_cursor', field: 'streams.0.cursor_field' });
    expect((await create({ ...into, streams: by('exact') })).http).toBe(201);
  }
  test('sqlite', async () => {
    const database = new Database(join(files, 'codes.db'), { create: true });
    database.run('create table codes (exact text, folded text collate nocase)');
    database.close();
    await expectUnfit('sqlite', { path: 'codes.db' });
  });
  test('duckdb', async () => {
    await onDuckDb(join(files, 'codes.duckdb'), 'create table codes (exact varchar, folded varchar collate nocase)');
    await expectUnfit('duckdb', { path: 'codes.duckdb' });
  });
  test.skipIf(mariaDbMissing !== null)('mysql', async () => {
    const server = await testMariaDb();
    const database = await server.database();
    await server.sql(
      'create table codes (exact varchar(9) collate utf8mb4_bin, folded varchar(9) collate utf8mb4_general_ci)',
      database,
    );
    const { host, port, username, password } = server;
    await expectUnfit('mysql', { host, port, username, password, database, ssl_mode: 'disable' });
  });
});

describe('settings that were saved before a rule existed', () => {
  test('are read, fail the next run with the same finding, and are refused at the next save', async () => {
    const { id, streams } = await create({ ...(await ends()), streams: stream({ destination_sync_mode: 'append' }) });
    const filters = [{ field: 'id', operator: 'between', value: 5 }];
    await deps.db.update(connectionStreams).set({ filters }).where(eq(connectionStreams.id, streams[0].id));
    const read = await call('GET', `/connections/${id}`);
    expect([read.status, read.body.streams[0].filters]).toEqual([200, filters]);
    const started = await call('POST', `/connections/${id}/run`);
    expect(await runEnded(service, started.body)).toMatchObject({ status: 'failed' });
    const [run] = await getStreamRuns(service, started.body);
    expect(run!.error).toMatchObject({ code: 'invalid_filter', origin: 'replication', retryable: false });
    const preview = await call('POST', `/connections/${id}/run/preview`, {});
    expect(preview.body).toMatchObject({ decision: 'blocked', blockers: [{ code: 'invalid_filter' }] });
    expect((await call('POST', `/connections/${id}/run`, { mode: 'full_refresh' })).body.code).toBe('invalid_filter');
    const saved = await call('POST', `/connections/${id}`, { streams: stream({ backfill_days: 1 }) });
    expect(saved.body.code).toBe('invalid_filter');
    expect((await call('POST', `/connections/${id}`, { description: 'x' })).status).toBe(200);
  });
});
