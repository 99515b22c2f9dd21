import { beforeEach, describe, expect, test } from 'bun:test';
import { eq, inArray } from 'drizzle-orm';
import { accountConnectors, accounts, connectionRuns, usageLedger } from '../../db/schema/index.ts';
import { LIVE_RUN } from '../../server/pipeline/run-states.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { endRun } from '../support/pipeline.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { makerOf } from '../support/resources.ts';

const INCLUDED = 1_000_000;
const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const { call } = testApi(service);
const make = makerOf(call);
const [source, destination] = [await make.source(), await make.destination()];
const created: { id: string }[] = [];
for (let n = 0; n < 8; n += 1)
  created.push(await make.connection({ source_id: source.id, destination_id: destination.id }));
await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, account_id));

const setFree = (free_until: string | null) =>
  db.update(accountConnectors).set({ free_until }).where(eq(accountConnectors.id, source.id));
const use = (credits: number) => db.insert(usageLedger).values(ledgerEntry(account_id, credits));
const run = (at: number) => call('POST', `/connections/${created[at]!.id}/run`);
const runAll = () => Promise.all(created.map((_, at) => run(at)));
const count = (answers: { status: number }[], status: number) =>
  answers.filter((answer) => answer.status === status).length;

/** Records this many rows as loaded by the connection's last run. */
async function usually(at: number, rows: number): Promise<void> {
  const { body: id } = await run(at);
  await endRun(db, id, 'succeeded', { streams: { rows_loaded: rows } });
}

beforeEach(async () => {
  await db.delete(connectionRuns);
  await db.delete(usageLedger);
  await setFree('2020-01-01T00:00:00.000Z');
});

describe('parallel run starts', () => {
  test('with one credit left start one run', async () => {
    await use(INCLUDED - 1);
    const answers = await runAll();
    expect([count(answers, 200), count(answers, 402)]).toEqual([1, 7]);
    expect(answers.find(({ status }) => status === 402)?.body).toEqual({
      detail: 'The credits of the plan are used up: 1000000 of 1000000, 1 of them reserved by live runs',
      code: 'credits_exhausted',
      limit: 'credits_included',
      limit_value: INCLUDED,
      current_value: INCLUDED,
      plan: 'free',
    });
  });

  test('start no more than the remaining credits cover, by the usual rows of each connection', async () => {
    for (let at = 0; at < created.length; at += 1) await usually(at, 300);
    await use(INCLUDED - 1000);
    const answers = await runAll();
    // Three runs of 300, and a fourth that the remaining 100 allow.
    expect([count(answers, 200), count(answers, 402)]).toEqual([4, 4]);
    const live = await db.select().from(connectionRuns).where(inArray(connectionRuns.status, LIVE_RUN));
    expect(live.reduce((sum, { credits_reserved }) => sum + credits_reserved, 0)).toBe(1000);
  });

  test('of connections without history run one at a time, and an ended run releases its reservation', async () => {
    await use(INCLUDED - 5000);
    const answers = await runAll();
    expect([count(answers, 200), count(answers, 402)]).toEqual([1, 7]);
    const first = answers.find(({ status }) => status === 200)?.body;
    await call('POST', `/connections/${first}/stop`);
    expect(count(await runAll(), 200)).toBe(1);
  });

  test('reserve nothing while rows are free or overage is allowed', async () => {
    await use(INCLUDED - 1);
    await setFree(null);
    expect(count(await runAll(), 200)).toBe(8);
    await db.delete(connectionRuns);
    await setFree('2020-01-01T00:00:00.000Z');
    await db.update(accounts).set({ plan_id: 'pro' }).where(eq(accounts.id, account_id));
    expect(count(await runAll(), 200)).toBe(8);
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, account_id));
    expect((await db.select().from(connectionRuns)).every(({ credits_reserved }) => credits_reserved === 0)).toBe(true);
  });
});

test('replace the reservation by the credits in the ledger', async () => {
  await usually(0, 600);
  await usually(1, 600);
  await use(INCLUDED - 1000);
  const { body: id } = await run(0);
  await db.update(connectionRuns).set({ credits_used: 600 }).where(eq(connectionRuns.id, id));
  await use(600);
  const second = (await run(1)).body;
  const [held] = await db.select().from(connectionRuns).where(eq(connectionRuns.id, second));
  expect(held?.credits_reserved).toBe(400);
});
