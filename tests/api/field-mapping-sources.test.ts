import { describe, expect, test } from 'bun:test';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const other = await api.otherAccount();
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const redacted = { path: ['name'], masking: 'redact' };
const renamed = { path: ['amount'], destination_name: 'sum' };
const mapped = (name: string, ...fields: object[]) => ({ name, fields });
const sources = async (id: string, caller = call) => caller('GET', `/connections/${id}/field_mapping_sources`);

// Each has its own source of three streams, except `near`, which shares the source of `mine`.
const three = async () => (await make.source({ streams: 3 })).id;
const shared = await three();
const mine = await make.connection({ source_id: shared, streams: [{ name: 'stream_1', fields: [redacted] }] });
const one = await make.connection({ source_id: await three(), streams: [mapped('stream_1', redacted, renamed)] });
const two = await make.connection({
  source_id: shared,
  streams: [mapped('stream_1', redacted), mapped('stream_2', renamed)],
});
const later = await make.connection({ source_id: await three(), streams: [mapped('stream_3', redacted)] });
const unmapped = await make.connection({ source_id: await three() });
const database = await createPlainDatabase();
const elsewhere = await make.connection({
  destination_id: (await make.connector('destination', 'postgres', postgresParameters(database.url))).id,
  streams: [mapped('stream_1', redacted)],
});
await makerOf(other.call).connection({ streams: [mapped('stream_1', redacted)] });

describe('GET /connections/{connection_id}/field_mapping_sources', () => {
  test('200: most streams in common first, then the last updated, with all settings', async () => {
    const { status, body } = await sources(mine.id);
    expect(status).toBe(200);
    expect(body.map((each: { connection_id: string }) => each.connection_id)).toEqual([two.id, later.id, one.id]);
    expect(body[0]).toEqual({
      connection_id: two.id,
      name: two.name,
      source_connector_name: 'sample',
      destination_connector_name: 'sample',
      stream_count: 3,
      mapped_stream_count: 2,
      mapped_field_count: 2,
      matching_stream_names: ['stream_1', 'stream_2'],
      is_same_source: true,
      updated_at: two.updated_at,
    });
    expect(body[2]).toMatchObject({ mapped_stream_count: 1, mapped_field_count: 2, is_same_source: false });
  });

  test('200: excludes itself and connections without settings, with other connectors, deleted or of another account', async () => {
    const ids = (await sources(unmapped.id)).body.map((each: { connection_id: string }) => each.connection_id);
    expect(ids.toSorted()).toEqual([mine.id, one.id, two.id, later.id].toSorted());
    expect((await sources(elsewhere.id)).body).toEqual([]);
    const gone = await make.connection({ streams: [mapped('stream_1', redacted)] });
    expect((await sources(mine.id)).body).toHaveLength(4);
    await call('DELETE', `/connections/${gone.id}`);
    expect((await sources(mine.id)).body).toHaveLength(3);
  });

  test('200: a create can copy from each listed connection', async () => {
    const [best] = (await sources(mine.id)).body;
    const copy = await make.connection({
      source_id: await three(),
      copy_field_mapping_from_connection_id: best.connection_id,
    });
    const fields = Object.fromEntries(
      copy.streams.map((each: { name: string; fields: object[] }) => [each.name, each.fields]),
    );
    expect(fields).toMatchObject({ stream_1: [redacted], stream_2: [renamed], stream_3: [] });
    await call('DELETE', `/connections/${copy.id}`);
  });

  test('401: without a key', async () => {
    expect((await sources(UNKNOWN, anonymous)).status).toBe(401);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense']) expect((await sources(id)).status).toBe(404);
    expect((await sources(mine.id, other.call)).status).toBe(404);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('GET', `/connections/${mine.id}/field_mapping_sources?limit=1`)).status).toBe(422);
  });
});
