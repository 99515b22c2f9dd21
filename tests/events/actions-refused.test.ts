import { afterEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, accounts, connections, usageLedger, users } from '../../db/schema/index.ts';
import { deliveringService } from '../support/deliveries.ts';
import { connectionId } from '../support/firings.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { stopAllRuns } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

/** No mail server, and retries that come too late for a test. */
const bench = await deliveringService({ SMTP_URL: null, DELIVERY_BACKOFF_SECONDS: 600 });
const { service, deps, call, make, trigger, event, failed, fire, settled, deliveriesOf, eventsOf } = bench;
const { db } = deps;
const { account_id } = service;
const [source, destination] = [await make.source(), await make.destination()];

const setAccount = (values: Partial<typeof accounts.$inferInsert>) =>
  db.update(accounts).set(values).where(eq(accounts.id, account_id));
const setConnection = (id: string, values: Partial<typeof connections.$inferInsert>) =>
  db.update(connections).set(values).where(eq(connections.id, id));
const setSource = (values: Partial<typeof accountConnectors.$inferInsert>) =>
  db.update(accountConnectors).set(values).where(eq(accountConnectors.id, source.id));
const connection = () => make.connection({ source_id: source.id, destination_id: destination.id });

afterEach(async () => {
  await setAccount({ plan_id: 'self_hosted', payment_status: 'active' });
  await setSource({ status: 'active', free_until: null });
  await db.delete(usageLedger);
  await stopAllRuns(db);
});

/** Reasons to refuse a run, and the resulting state of the delivery. */
const REFUSALS: [
  name: string,
  refuse: (id: string) => Promise<unknown>,
  status: 'failed' | 'retrying',
  error: string,
][] = [
  [
    'paused',
    (id) => setConnection(id, { status: 'paused' }),
    'failed',
    'connection_not_active: The connection is paused',
  ],
  [
    'locked',
    (id) => setConnection(id, { status: 'locked' }),
    'failed',
    'connection_not_active: The connection is locked',
  ],
  ['auto_disabled', (id) => setConnection(id, { status: 'auto_disabled' }), 'failed', 'connection_not_active: '],
  ['of a broken source', () => setSource({ status: 'broken' }), 'retrying', 'account_connector_not_ready: '],
  ['overdue', () => setAccount({ payment_status: 'overdue' }), 'failed', 'plan_limit: '],
  ['without credits', () => useUp(1_000_000), 'failed', 'plan_limit: The credits of the plan are used up'],
  ['whose credits other runs reserve', () => holdTheRest(), 'retrying', 'of them reserved by live runs'],
];

async function useUp(credits: number): Promise<void> {
  await setAccount({ plan_id: 'free' });
  await setSource({ free_until: '2020-01-01T00:00:00.000Z' });
  await db.insert(usageLedger).values(ledgerEntry(account_id, credits));
}

/** A run of a connection without history reserves all remaining credits. */
async function holdTheRest(): Promise<void> {
  const { id } = await connection();
  await useUp(999_000);
  expect((await call('POST', `/connections/${id}/run`)).status).toBe(200);
}

describe.each(REFUSALS)('a connection %s', (_name, refuse, status, error) => {
  const attempted = async (created: { id: string }) => {
    await until(async () => (await deliveriesOf(created)).every((one) => one.error !== null));
    expect(await deliveriesOf(created)).toMatchObject([{ status, attempts: 1, error: expect.stringContaining(error) }]);
  };

  test('is not run by run_connection', async () => {
    const { id } = await connection();
    const created = await trigger({
      rule: 'event == "user_added"',
      actions: [{ type: 'run_connection', connection_id: id }],
    });
    await refuse(id);
    await fire({ trigger: created, event: await event('user_added'), group: {}, kind: 'fired' });
    await attempted(created);
    expect((await call('GET', `/connections/${id}/runs`)).body).toEqual([]);
  });

  test('is not run by rerun_run', async () => {
    const { id } = await connection();
    const { body: run_id } = await call('POST', `/connections/${id}/run`);
    await call('POST', `/connections/${run_id}/stop`);
    const created = await trigger({ actions: [{ type: 'rerun_run' }] });
    await refuse(id);
    await failed(created, { connection_id: id, connection_run_id: run_id });
    await attempted(created);
    expect((await call('GET', `/connections/${id}/runs`)).body).toHaveLength(1);
  });
});

test('mail without a mail server fails at once, visibly in the case and as an event', async () => {
  const [administrator] = await db.select().from(users).where(eq(users.id, service.user_id));
  const created = await trigger({
    actions: [
      {
        type: 'send_email',
        recipients: [administrator!.email],
        subject_template: 'Failed',
        body_template: 'It failed',
      },
    ],
  });
  const { case_id } = await failed(created, { connection_id: connectionId() });
  const error = 'mail_not_configured: No mail server is configured. Set SMTP_URL';
  expect(await settled(created)).toMatchObject([{ status: 'failed', attempts: 1, error }]);
  const { body } = await call('GET', `/automation/cases/${case_id}`);
  expect(body.deliveries).toMatchObject([{ type: 'send_email', status: 'failed', error }]);
  const emitted = (await eventsOf('action_failed')).filter(({ payload }) => payload.trigger_id === created.id);
  expect(emitted).toMatchObject([{ payload: { action_type: 'send_email', trigger_name: created.name } }]);
});
