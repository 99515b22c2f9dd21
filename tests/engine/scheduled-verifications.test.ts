import { afterAll, expect, test } from 'bun:test';
import { and, eq, sql } from 'drizzle-orm';
import postgres from 'postgres';
import { accountConnectors, connections, events } from '../../db/schema/index.ts';
import { startDueVerifications } from '../../server/transfer/verification/start-due.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker' });
const { deps } = service;
const { call } = testApi(service);
const make = makerOf(call);
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(deps);
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;

const HOURLY = { type: 'interval', interval_minutes: 60 };

/** A connection of one table with three rows, after its first run. */
async function loaded(table: string, settings: object): Promise<Json> {
  await source.unsafe(
    `create table ${table} (id int primary key, name text); insert into ${table} select n, 'n' || n from generate_series(1, 3) n`,
  );
  const side = await make.connector('source', 'postgres', postgresParameters(from.url));
  const destination = await make.connector('destination', 'postgres', postgresParameters(to.url));
  await until(async () => (await call('GET', `/account_connectors/source/${side.id}`)).body.catalog_status === 'ready');
  const connection = await make.connection({
    name: uniqueName(table),
    source_id: side.id,
    destination_id: destination.id,
    streams: [{ name: table }],
    ...settings,
  });
  const { body } = await call('POST', `/connections/${connection.id}/run`);
  expect((await runEnded(service, body)).status).toBe('succeeded');
  return connection;
}

async function comeDue({ id }: Json): Promise<void> {
  await makeDue({ id });
  await startDueVerifications(deps);
}

const makeDue = ({ id }: Json, rest: Partial<typeof connections.$inferInsert> = {}) =>
  deps.db
    .update(connections)
    .set({ next_verification_at: sql`now() - interval '1 second'`, ...rest })
    .where(eq(connections.id, id));

const verificationsOf = async ({ id }: Json): Promise<Json[]> =>
  (await call('GET', `/connections/${id}/verifications`)).body;

const ended = async (connection: Json, count: number): Promise<Json> => {
  await until(async () => {
    const all = await verificationsOf(connection);
    return all.length === count && all.every(({ finished_at }) => finished_at !== null);
  });
  return (await verificationsOf(connection))[0];
};

const eventsOf = ({ id }: Json, event: string) =>
  deps.db
    .select()
    .from(events)
    .where(and(eq(events.connection_id, id), eq(events.event, event)));

test('a schedule compares all streams at each tick, and its events tell what was found', async () => {
  const connection = await loaded('at_ticks', { verification_schedule: HOURLY });
  expect(connection.verification_schedule).toMatchObject({ ...HOURLY, description: 'Every hour' });
  expect(connection.verification_schedule.next_runs).toHaveLength(5);
  await startDueVerifications(deps);
  expect(await verificationsOf(connection)).toEqual([]);
  await comeDue(connection);
  expect(await ended(connection, 1)).toMatchObject({ status: 'succeeded', triggered_by: null, repair: false });
  expect(await eventsOf(connection, 'verification_succeeded')).toHaveLength(1);
  await target.unsafe(`update at_ticks set name = 'lost' where id = 2`);
  await comeDue(connection);
  const found = await ended(connection, 2);
  expect(found).toMatchObject({ status: 'failed', streams: [{ differences: [{ kind: 'different', key: ['2'] }] }] });
  const [failed] = await eventsOf(connection, 'verification_failed');
  expect(failed?.payload).toMatchObject({ verification_id: found.id, rows_different: 1 });
  // Neither of the two was due again at once.
  const { body } = await call('GET', `/connections/${connection.id}`);
  expect(Date.parse(body.verification_schedule.next_runs[0])).toBeGreaterThan(Date.now());
  expect(body.revision).toBe(connection.revision);
});

test('a verification that cannot start leaves a failed one with the reason', async () => {
  const connection = await loaded('no_source', { verification_schedule: HOURLY });
  await deps.db
    .update(accountConnectors)
    .set({ status: 'broken' })
    .where(eq(accountConnectors.id, connection.source_id));
  await comeDue(connection);
  const found = await ended(connection, 1);
  expect(found).toMatchObject({ status: 'failed', streams: [], error: { code: 'account_connector_not_ready' } });
  const [failed] = await eventsOf(connection, 'verification_failed');
  expect(failed?.payload).toMatchObject({ error_code: 'account_connector_not_ready' });
});

test('one whose start fails does not hold up the others, and is tried again later', async () => {
  const [failing, fine] = [
    await loaded('failing_ones', { verification_schedule: HOURLY }),
    await loaded('fine_ones', { verification_schedule: HOURLY }),
  ];
  const schedule = { ...HOURLY, type: 'cron', cron_expression: '0 * * * *', timezone: 'Nowhere/Gone' } as Json;
  await makeDue(failing, { verification_schedule: schedule });
  await comeDue(fine);
  expect(await ended(fine, 1)).toMatchObject({ status: 'succeeded' });
  expect(await verificationsOf(failing)).toEqual([]);
  const [row] = await deps.db.select().from(connections).where(eq(connections.id, failing.id));
  expect(Date.parse(row?.next_verification_at ?? '')).toBeGreaterThan(Date.now());
});

test('a paused connection is not verified before it is resumed, and null ends the schedule', async () => {
  const connection = await loaded('paused_ones', { verification_schedule: HOURLY });
  const update = (body: object) => call('POST', `/connections/${connection.id}`, body);
  expect((await update({ status: 'paused' })).body.verification_schedule.next_runs).toEqual([]);
  await comeDue(connection);
  expect(await verificationsOf(connection)).toEqual([]);
  await update({ status: 'active' });
  await startDueVerifications(deps);
  expect(await ended(connection, 1)).toMatchObject({ status: 'succeeded' });
  expect((await update({ verification_schedule: null })).body.verification_schedule).toBeNull();
  const [row] = await deps.db.select().from(connections).where(eq(connections.id, connection.id));
  expect(row?.next_verification_at).toBeNull();
});

test('400: a schedule that follows the log, or that never fires', async () => {
  const connection = await loaded('refused_ones', {});
  expect(connection.verification_schedule).toBeNull();
  const update = (verification_schedule: object) =>
    call('POST', `/connections/${connection.id}`, { verification_schedule });
  expect(await update({ type: 'continuous' })).toMatchObject({
    status: 400,
    body: { code: 'invalid_schedule', field: 'verification_schedule.type' },
  });
  expect(await update({ type: 'cron', cron_expression: '0 0 31 2 *' })).toMatchObject({
    status: 400,
    body: { code: 'invalid_cron', field: 'verification_schedule.cron_expression' },
  });
});
