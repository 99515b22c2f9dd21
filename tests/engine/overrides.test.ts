import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { connectionStreams, type StreamRow } from '../../db/schema/index.ts';
import type { Field, LogicalType, StreamSchema } from '../../server/connectors/contract/connector.ts';
import { findConnector } from '../../server/connectors/registry.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import {
  applyOverrides,
  incompatibility,
  type Overrides,
  withCatalogChoices,
} from '../../server/pipeline/overrides.ts';
import { suggestSettings } from '../../server/pipeline/suggest-settings.ts';
import { planTransfer } from '../../server/pipeline/transfer-plan.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const field = (name: string, type: LogicalType = 'string', rest: Partial<Field> = {}): Field => ({
  path: [name],
  type,
  source_type: null,
  dialect: null,
  nullable: true,
  is_primary_key: name === 'id',
  is_cursor_candidate: type === 'timestamp_tz',
  ...rest,
});
const schema: StreamSchema = {
  namespace: null,
  name: 'people',
  description: null,
  fields: [field('id', 'integer'), field('email'), field('at', 'timestamp_tz'), field('seen', 'timestamp_tz')],
  supported_sync_modes: ['full_refresh', 'incremental'],
  source_defined_cursor: false,
  default_cursor_field: ['at'],
  source_defined_primary_key: [['id']],
  is_resumable: true,
  supports_date_window: true,
  suggested: true,
};
const stream = (rest: Partial<StreamRow> = {}) =>
  ({
    fields: [],
    primary_key: [['id']],
    cursor_field: ['at'],
    state: null,
    ...rest,
  }) as unknown as StreamRow;
const choice = (name: string, rest: object = {}) => ({
  path: [name],
  selected: true,
  destination_name: null,
  destination_type: null,
  masking: 'none',
  ...rest,
});

describe('a stream with overrides', () => {
  test('has the overridden key, cursor and nullability', () => {
    const said = {
      email: { is_primary_key: true, nullable: false },
      id: { is_primary_key: false },
      seen: { is_cursor: true },
    };
    const effective = applyOverrides(schema, said);
    expect(effective.source_defined_primary_key).toEqual([['email']]);
    expect(effective.default_cursor_field).toEqual(['seen']);
    expect(effective.fields.map(({ nullable }) => nullable)).toEqual([true, false, true, true]);
    expect(schema.source_defined_primary_key).toEqual([['id']]);
  });

  test('is written with the overridden nullability', () => {
    const plan = planTransfer({
      source: findConnector('source', 'sample')!,
      schema: applyOverrides(schema, { email: { nullable: false } }),
      stream: { ...stream(), filters: [] },
    });
    expect(plan.columns.map(({ target }) => target.nullable)).toEqual([true, false, true, true]);
  });

  test('keeps the source order in an extended key, and can lose its key and cursor', () => {
    expect(applyOverrides(schema, { email: { is_primary_key: true } }).source_defined_primary_key).toEqual([
      ['id'],
      ['email'],
    ]);
    const none = applyOverrides(schema, { id: { is_primary_key: false }, at: { is_cursor: false } });
    expect([none.source_defined_primary_key, none.default_cursor_field]).toEqual([null, null]);
  });

  test('is suggested to be read incrementally if its key and a cursor that is never empty are there', () => {
    const suggest = (said: Overrides, changes: Partial<StreamSchema> = {}) => {
      const { sync_mode, cursor_field, primary_key, reason } = suggestSettings(
        applyOverrides({ ...schema, ...changes }, said),
      );
      return [sync_mode, cursor_field?.join('.') ?? null, primary_key?.join(',') ?? null, reason];
    };
    const filled = { at: { nullable: false } };
    const grows =
      'at grows with each change and id identifies the rows. Rows deleted at the source stay in the destination';
    expect(suggest(filled)).toEqual(['incremental', 'at', 'id', grows]);
    expect(suggest({})).toEqual([
      'full_refresh',
      null,
      'id',
      'at can be empty, and changes to such rows would be missed',
    ]);
    const keyless = { ...filled, id: { is_primary_key: false } };
    expect(suggest(keyless)).toEqual([
      'full_refresh',
      null,
      null,
      'Without a primary key, changed rows cannot be merged',
    ]);
    expect(suggest(filled, { default_cursor_field: null })[3]).toBe('No field shows when a row was changed');
    expect(suggest(filled, { supported_sync_modes: ['full_refresh'] })[3]).toBe('The source can only read all rows');
    const own = 'The source reports new and changed rows, and id identifies them';
    expect(suggest({}, { source_defined_cursor: true })).toEqual(['incremental', 'at', 'id', own]);
    const logged = suggest({}, { change_log: true, source_defined_cursor: true, default_cursor_field: null });
    const log = 'The change log has every insert, update and delete, and id identifies the rows';
    expect(logged).toEqual(['incremental', null, 'id', log]);
  });

  test('is unchanged without overrides, and by those of removed fields', () => {
    expect(applyOverrides(schema, {})).toBe(schema);
    expect(applyOverrides(schema, { gone: { is_primary_key: true, is_cursor: true, nullable: false } })).toEqual(
      schema,
    );
    expect(withCatalogChoices(stream(), schema, { gone: { excluded: true } }).fields).toEqual([]);
  });
});

describe('settings of a connection', () => {
  const said = { email: { destination_name: 'mail', type: 'integer' as const, masking: 'redact' as const } };

  test('override the same setting of the catalog, which decides the others', () => {
    const merged = withCatalogChoices(
      stream({ fields: [choice('email', { destination_name: 'address' })] }),
      schema,
      said,
    );
    expect(merged.fields).toEqual([
      choice('email', { destination_name: 'address', destination_type: 'integer', masking: 'redact' }),
    ]);
    const hashed = withCatalogChoices(stream({ fields: [choice('email', { masking: 'hash_sha256' })] }), schema, said);
    expect(hashed.fields).toEqual([
      choice('email', { destination_name: 'mail', destination_type: 'integer', masking: 'hash_sha256' }),
    ]);
  });

  test('keep exclusions and masks of the catalog for a listed field', () => {
    const merged = withCatalogChoices(stream({ fields: [choice('email')] }), schema, {
      email: { excluded: true, masking: 'redact' },
    });
    expect(merged.fields).toEqual([choice('email', { selected: false, masking: 'redact' })]);
  });

  test('override a key or cursor only where it differs from the discovered one; a stream with state keeps its cursor', () => {
    const other = { email: { is_primary_key: true }, seen: { is_cursor: true } };
    expect(withCatalogChoices(stream(), schema, other)).toMatchObject({
      primary_key: [['id'], ['email']],
      cursor_field: ['seen'],
    });
    const own = stream({ primary_key: [['at']], cursor_field: ['id'] });
    expect(withCatalogChoices(own, schema, other)).toMatchObject({ primary_key: [['at']], cursor_field: ['id'] });
    const begun = stream({ state: { cursor: '2025-01-01' } });
    expect(withCatalogChoices(begun, schema, other).cursor_field).toEqual(['at']);
  });
});

describe('compatible overrides', () => {
  test.each([
    ['integer', 'string', true],
    ['string', 'integer', true],
    ['date', 'timestamp', true],
    ['json', 'string', true],
    ['integer', 'integer', true],
    ['number', 'integer', false],
    ['string', 'boolean', false],
    ['boolean', 'date', false],
    ['timestamp', 'binary', false],
  ] as const)('%s as %s: %p', (from, to, fits) => {
    expect(incompatibility(field('x', from), { type: to }) === null).toBe(fits);
  });

  test('a cursor needs an order, a key needs equality', () => {
    expect(incompatibility(field('x', 'boolean'), { is_cursor: true })).not.toBeNull();
    expect(incompatibility(field('x', 'json'), { is_primary_key: true })).not.toBeNull();
    expect(incompatibility(field('x', 'integer'), { is_cursor: true, is_primary_key: true })).toBeNull();
  });
});

describe('the next run', () => {
  test('applies type, name, key, cursor, mask and exclusion', async () => {
    const service = await testDeps({ role: 'worker' });
    const worker = await startWorker(service.deps);
    const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
    const [source, target] = [from, to].map(({ url }) => postgres(url, { max: 1, onnotice: () => {} })) as [
      postgres.Sql,
      postgres.Sql,
    ];
    afterAll(async () => {
      await worker.stop();
      await Promise.all([source.end(), target.end()]);
    });
    await source`create table people (id int not null, email text, secret text, amount int, seen timestamptz)`;
    await source`insert into people values (1, 'a@b.c', 'x', 7, '2025-01-01'), (1, 'a@b.c', 'x', 8, '2025-01-02')`;
    const { call } = testApi(service);
    const make = makerOf(call);
    const one = await make.connector('source', 'postgres', postgresParameters(from.url));
    const two = await make.connector('destination', 'postgres', postgresParameters(to.url));
    const { id } = await make.connection({ source_id: one.id, destination_id: two.id });
    const said = [
      { path: ['id'], is_primary_key: true },
      { path: ['email'], masking: 'redact', destination_name: 'mail' },
      { path: ['secret'], excluded: true },
      { path: ['amount'], type: 'string' },
      { path: ['seen'], is_cursor: true },
    ];
    const catalog = await call('POST', `/account_connectors/${one.id}/catalog`, {
      items: [{ name: 'people', field_overrides: said }],
    });
    expect(catalog.status).toBe(200);
    const streams = [
      { name: 'people', sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: null },
    ];
    const updated = await call('POST', `/connections/${id}`, { streams });
    expect(updated.body.streams).toMatchObject([{ cursor_field: ['seen'], primary_key: [['id']] }]);
    const { body: run } = await call('POST', `/connections/${id}/run`);
    await until(async () => (await call('GET', `/connections/${id}`)).body.active_run_id === null);
    const [ended] = (await call('GET', `/connections/${id}/runs`)).body;
    expect(ended).toMatchObject({ id: run, status: 'succeeded', error: null });
    expect(Array.from(await target`select id, mail, amount from people`)).toEqual([
      { id: 1, mail: '***', amount: '8' },
    ]);
    const columns = await target`
      select column_name from information_schema.columns where table_name = 'people' order by ordinal_position`;
    expect(columns.map((row) => row.column_name)).not.toContain('secret');
    const [kept] = await service.deps.db
      .select()
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, id));
    expect(kept?.state?.cursor).toStartWith('2025-01-02');
  });
});
