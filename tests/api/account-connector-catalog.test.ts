import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, catalogStreams, events } from '../../db/schema/index.ts';
import { refreshCatalog } from '../../server/catalog/discover.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const sourcesOnly = api.as(await api.keyWith(['sources.update']));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).source();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const database = await createPlainDatabase();
const sql = postgres(database.url, { max: 1, onnotice: () => {} });
await sql`create schema other`;
await sql`create table users (id int primary key, email text, tags jsonb, created timestamptz, active boolean)`;
await sql`create table orders (number int, note text)`;
await sql`create table other.orders (number int)`;
afterAll(() => sql.end());
const destination = await make.destination();

/** A PostgreSQL source with a discovered catalog. */
async function shop() {
  const source = await make.connector('source', 'postgres', postgresParameters(database.url));
  await make.connection({
    source_id: source.id,
    destination_id: destination.id,
    table_prefix: `${Bun.randomUUIDv7()}_`.slice(0, 40),
  });
  return source as { id: string; name: string };
}
const source = await shop();
const update = (items: object[], mode?: string, id = source.id) =>
  call('POST', `/account_connectors/${id}/catalog`, { items, ...(mode && { mode }) });
const users = (...field_overrides: object[]) => ({ name: 'users', field_overrides });
// oxlint-disable-next-line typescript/no-explicit-any -- tests read responses of any shape
const overrideOf = (catalog: any[], name: string, field: string) =>
  catalog
    .find((one) => one.name === name && one.namespace === 'public')
    .fields.find((one: { name: string }) => one.name === field).override;

describe('POST /account_connectors/{account_connector_id}/catalog', () => {
  test('200: lists the whole catalog in a stable order, discovered values beside overrides', async () => {
    const { status, body } = await update([users({ path: ['email'], masking: 'redact', destination_name: 'mail' })]);
    expect(status).toBe(200);
    expect(body.map((one: { namespace: string; name: string }) => `${one.namespace}.${one.name}`)).toEqual([
      'other.orders',
      'public.orders',
      'public.users',
    ]);
    const stream = body[2];
    expect(stream).toMatchObject({
      source_defined_primary_key: [['id']],
      change_status: 'unchanged',
      removed_at: null,
      supported_sync_modes: ['full_refresh', 'incremental'],
    });
    expect(stream.fields[1]).toEqual({
      path: ['email'],
      name: 'email',
      type: 'string',
      source_type: 'text',
      nullable: true,
      is_primary_key: false,
      is_cursor_candidate: stream.fields[1].is_cursor_candidate,
      enum_values: null,
      sample: null,
      override: {
        type: null,
        destination_name: 'mail',
        description: null,
        is_primary_key: null,
        is_cursor: null,
        masking: 'redact',
        excluded: null,
        nullable: null,
      },
    });
    expect(stream.fields[0].override).toBeNull();
  });

  test('200: merge adds to the overrides, null removes a key, clear removes those of the field', async () => {
    await update([users({ path: ['email'], clear: true }, { path: ['created'], excluded: true })]);
    const added = await update([
      users({ path: ['email'], masking: 'redact' }, { path: ['email'], description: 'who' }),
    ]);
    expect(overrideOf(added.body, 'users', 'email')).toMatchObject({ masking: 'redact', description: 'who' });
    expect(overrideOf(added.body, 'users', 'created')).toMatchObject({ excluded: true });
    const back = await update([users({ path: ['email'], masking: null })]);
    expect(overrideOf(back.body, 'users', 'email')).toMatchObject({ masking: null, description: 'who' });
    const cleared = await update([users({ path: ['email'], clear: true })]);
    expect(overrideOf(cleared.body, 'users', 'email')).toBeNull();
    const renewed = await update([users({ path: ['created'], clear: true, nullable: false })]);
    expect(overrideOf(renewed.body, 'users', 'created')).toMatchObject({ excluded: null, nullable: false });
  });

  test('200: replace keeps only the overrides in the request', async () => {
    await update([
      users({ path: ['email'], masking: 'redact' }),
      { name: 'orders', namespace: 'public', field_overrides: [{ path: ['note'], excluded: true }] },
    ]);
    const { body } = await update([users({ path: ['active'], destination_name: 'is_active' })], 'replace');
    expect(overrideOf(body, 'users', 'email')).toBeNull();
    expect(overrideOf(body, 'orders', 'note')).toBeNull();
    expect(overrideOf(body, 'users', 'active')).toMatchObject({ destination_name: 'is_active' });
  });

  test('200: selects a stream by its id; a request that changes nothing emits no event', async () => {
    const fresh = await shop();
    const { body } = await update([{ name: 'users', field_overrides: [] }], 'merge', fresh.id);
    const { stream_id } = body.find((one: { name: string }) => one.name === 'users');
    const item = { stream_id, field_overrides: [{ path: ['email'], description: 'who' }] };
    const first = await update([item], 'merge', fresh.id);
    expect((await update([item], 'merge', fresh.id)).body).toEqual(first.body);
    const emitted = await deps.db.select().from(events).where(eq(events.account_connector_id, fresh.id));
    const changes = emitted.filter((one) => one.event === 'account_connector_updated');
    expect(changes.map((one) => one.payload)).toMatchObject([{ changed_fields: ['catalog'] }]);
  });

  test('200: overrides survive a new discovery', async () => {
    await update([users({ path: ['email'], description: 'kept' })]);
    const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, source.id));
    await refreshCatalog(deps, row!, { actor: SYSTEM_ACTOR });
    const { body } = await update([users()]);
    expect(overrideOf(body, 'users', 'email')).toMatchObject({ description: 'kept' });
  });

  test('200: new connections start with the overridden key and cursor', async () => {
    const fresh = await shop();
    const said = [{ path: ['number'], is_primary_key: true, is_cursor: true }];
    await update([{ name: 'orders', namespace: 'other', field_overrides: said }], 'merge', fresh.id);
    const connection = await make.connection({
      source_id: fresh.id,
      destination_id: (await make.connector('destination', 'postgres', postgresParameters(database.url))).id,
      streams: [
        { name: 'orders', namespace: 'other', sync_mode: 'incremental', destination_sync_mode: 'append_dedup' },
      ],
    });
    const [stream] = connection.streams;
    expect(stream).toMatchObject({ namespace: 'other', primary_key: [['number']], cursor_field: ['number'] });
  });

  const refused: [code: string, item: object][] = [
    ['unknown_stream', { name: 'nothing', field_overrides: [] }],
    ['unknown_stream', { stream_id: UNKNOWN, field_overrides: [] }],
    ['ambiguous_stream', { name: 'orders', field_overrides: [] }],
    ['unknown_field', users({ path: ['nothing'], excluded: true })],
    ['unknown_field', users({ path: ['tags', 'deep'], excluded: true })],
    ['type_incompatible', users({ path: ['active'], type: 'date' })],
    ['type_incompatible', users({ path: ['tags'], is_primary_key: true })],
    ['type_incompatible', users({ path: ['active'], is_cursor: true })],
    ['ambiguous_cursor', users({ path: ['id'], is_cursor: true }, { path: ['created'], is_cursor: true })],
    ['duplicate_destination_column', users({ path: ['email'], destination_name: 'id' })],
    ['field_in_use', users({ path: ['id'], excluded: true })],
  ];
  test.each(refused)('400: %s', async (code, item) => {
    const fresh = await shop();
    const { status, body } = await update([users({ path: ['email'], description: 'x' }), item], 'merge', fresh.id);
    expect([status, body.code]).toEqual([400, code]);
    expect(body.field).toStartWith('items.1');
    const kept = await deps.db.select().from(catalogStreams).where(eq(catalogStreams.account_connector_id, fresh.id));
    expect(kept.map((one) => one.overrides)).toEqual([{}, {}, {}]);
  });

  test('400: field_in_use names the connection that merges by the field', async () => {
    const fresh = await shop();
    const warehouse = await make.connector('destination', 'postgres', postgresParameters(database.url));
    const streams = [{ name: 'orders', namespace: 'public', primary_key: [['number']] }];
    const { id } = await make.connection({ source_id: fresh.id, destination_id: warehouse.id, streams });
    const item = { name: 'orders', namespace: 'public', field_overrides: [{ path: ['number'], excluded: true }] };
    const { status, body } = await update([item], 'merge', fresh.id);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'field_in_use', connection_ids: [id] });
  });

  test('400: source_defined_cursor where the source defines the cursor', async () => {
    const demo = await make.source();
    await make.connection({ source_id: demo.id });
    const item = { name: 'stream_1', field_overrides: [{ path: ['id'], is_cursor: true }] };
    expect((await update([item], 'merge', demo.id)).body.code).toBe('source_defined_cursor');
  });

  test('400: catalog_not_ready before the first discovery, and for destinations', async () => {
    for (const { id } of [await make.source(), await make.destination()]) {
      const { status, body } = await update([{ name: 'x', field_overrides: [] }], 'merge', id);
      expect([status, body.code]).toEqual([400, 'catalog_not_ready']);
    }
  });

  test.each(['\\u0000', '\\ud800'])(
    'a name with %s that the catalog cannot hold is named as the reason',
    async (odd) => {
      const files = join(deps.config.DATA_DIR, 'files');
      mkdirSync(files, { recursive: true });
      writeFileSync(join(files, 'odd.jsonl'), `{"id": 1, "a${odd}b": 2}\n`);
      const { id } = await make.connector('source', 'file', { path: 'odd.jsonl', format: 'jsonl' });
      const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
      const error = await refreshCatalog(deps, row!, { actor: SYSTEM_ACTOR }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: 'unstorable_name',
        message: `"a${odd}b" in the stream "odd" has invalid characters. Rename it at the source`,
      });
    },
  );

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/account_connectors/${UNKNOWN}/catalog`, {})).status).toBe(401);
  });

  test('403: without the permission for the connector type', async () => {
    const body = { items: [{ name: 'x', field_overrides: [] }] };
    const { status } = await sourcesOnly('POST', `/account_connectors/${destination.id}/catalog`, body);
    expect(status).toBe(403);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) expect((await update([users()], 'merge', id)).status).toBe(404);
  });

  test.each([
    ['no items', { items: [] }],
    ['neither id nor name', { items: [{ field_overrides: [] }] }],
    ['both id and name', { items: [{ stream_id: UNKNOWN, name: 'x', field_overrides: [] }] }],
    ['an unknown type', { items: [users({ path: ['id'], type: 'uuid' })] }],
    ['an unknown key', { items: [users({ path: ['id'], colour: 'red' })] }],
    ['an empty path', { items: [users({ path: [] })] }],
    ['an unknown mode', { items: [users()], mode: 'patch' }],
    ['no body', undefined],
  ])('422: %s', async (_, body) => {
    const { status } = await call('POST', `/account_connectors/${source.id}/catalog`, body);
    expect(status).toBe(422);
  });
});
