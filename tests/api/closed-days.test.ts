import { beforeEach, expect, test } from 'bun:test';
import { eq, gt, max } from 'drizzle-orm';
import fc from 'fast-check';
import {
  accountDays,
  accounts,
  connectionMonths,
  connectionPeriodChanges,
  connectionPeriods,
  connectionRuns,
  periodConnections,
  runDays,
  streamDays,
  usageLedger,
} from '../../db/schema/index.ts';
import { closeDays } from '../../server/billing/close-days.ts';
import { addDays, addMonths, daysIn, monthOf, utcDay } from '../../server/platform/utc-days.ts';
import { deleteOldHistory } from '../../server/worker/delete-old-history.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { makerOf } from '../support/resources.ts';

/** Sums of days that are over are stored. Answers must be the same before and after, whatever is written meanwhile. */
const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const { call } = testApi(service);
const make = makerOf(call);
const connections: string[] = [];
while (connections.length < 5) connections.push((await make.connection()).id);
const DELETED = 3;
await call('DELETE', `/connections/${connections[DELETED]}`);
const today = utcDay(new Date());
const ago = (days: number) => addDays(today, -days);

async function clear() {
  for (const table of [accountDays, connectionMonths, streamDays, runDays, connectionRuns, usageLedger])
    await db.delete(table);
  for (const table of [connectionPeriods, periodConnections, connectionPeriodChanges]) await db.delete(table);
}

beforeEach(clear);

/** Whether months are read from `connection_periods`. Those of accounts of earlier versions are read from their days. */
const setSummed = (isSummed: boolean) => db.update(accounts).set({ periods_from: isSummed ? ago(1000) : ago(-1000) });

let number = 0;
interface Fact {
  days: number;
  connection: number;
  rows: number;
  status: 'succeeded' | 'failed' | 'partially_succeeded' | 'skipped' | 'stopped' | 'running';
}

async function add({ days, connection, rows, status }: Fact): Promise<string> {
  const connection_id = connections[connection]!;
  const at = `${ago(days)}T23:59:59.999Z`;
  const id = Bun.randomUUIDv7();
  if (rows > 0)
    await db.insert(usageLedger).values({ ...ledgerEntry(account_id, rows), connection_id, day: ago(days) });
  await db.insert(connectionRuns).values({
    id,
    account_id,
    connection_id,
    number: (number += 1),
    status,
    run_type: 'plain',
    trigger_type: 'api',
    queued_at: at,
    created_at: at,
    finished_at: status === 'running' ? null : at,
    skip_reason: status === 'skipped' ? 'overlap' : null,
  });
  return id;
}

const end = (id: string) =>
  db
    .update(connectionRuns)
    .set({ status: 'succeeded', finished_at: new Date().toISOString() })
    .where(eq(connectionRuns.id, id));

const answer = async (path: string) => {
  const { status, body, headers } = await call('GET', path);
  expect(status).toBe(200);
  if (Array.isArray(body)) return { items: body, count: headers.get('x-total-count') };
  delete body.updated_at;
  return body;
};
const totals = (from: number, to: number) =>
  answer(`/billing/usage/aggregated?date_range=custom&start_date=${ago(from)}&end_date=${ago(to)}`);
const byConnection = (from: number, to: number, page = '') =>
  answer(`/billing/usage/connection-usage?start_date=${ago(from)}&end_date=${ago(to)}${page}`);
/** The whole month of so many months ago, as the days that its ends are ago. */
function monthAgo(count: number): [from: number, to: number] {
  const start = addMonths(monthOf(today), -count);
  const since = (day: string) => daysIn({ start: day, end: today }) - 1;
  return [since(start), since(addDays(addMonths(start, 1), -1))];
}

test('every answer is the same before and after its days are closed, and while they are', async () => {
  const fact = fc.record({
    days: fc.nat(130),
    connection: fc.nat(4),
    rows: fc.nat(3),
    status: fc.constantFrom<Fact['status']>('succeeded', 'failed', 'partially_succeeded', 'skipped', 'stopped'),
  });
  const range = fc.oneof(
    fc.tuple(fc.nat(130), fc.nat(130)).map(([a, b]): [number, number] => (a > b ? [a, b] : [b, a])),
    fc.nat(4).map(monthAgo),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fact, { minLength: 1, maxLength: 30 }), range, fact, async (facts, [from, to], late) => {
      await clear();
      await setSummed(facts.length % 2 === 0);
      const ask = () =>
        Promise.all([
          totals(from, to),
          byConnection(from, to),
          byConnection(from, to, '&limit=1&offset=1'),
          answer('/overview/activity?days=92'),
        ]);
      for (const one of facts) await add(one);
      const open = await ask();
      const [, , ...during] = await Promise.all([closeDays(deps), closeDays(deps), ask(), ask()]);
      expect(during).toEqual([open, open]);
      expect(await ask()).toEqual(open);
      const [last] = await db.select({ day: max(accountDays.day) }).from(accountDays);
      // Yesterday is closed an hour after its end.
      const over = facts.map(({ days }) => days).filter((days) => days > 1);
      if (over.length > 0) expect(last!.day! >= ago(Math.min(...over))).toBe(true);
      // Today is open: what a run loads now counts at once, also before the next days are closed.
      await add({ ...late, days: 0 });
      const now = await totals(130, 0);
      expect(now.totals.rows_total).toBe([...facts, late].reduce((sum, { rows }) => sum + rows, 0));
      expect(now.totals.runs).toBe(facts.length + 1);
    }),
    { numRuns: 25 },
  );
});

test.each([false, true])('pages of a month stay the same while its days are closed (summed: %p)', async (isSummed) => {
  await setSummed(isSummed);
  const [from, to] = monthAgo(2);
  // Three tie, one of them deleted. The last has runs only.
  for (const [connection, rows] of [5, 9, 5, 5, 0].entries()) {
    await add({ days: from, connection, rows: 0, status: 'failed' });
    await add({ days: to + 1, connection, rows, status: 'succeeded' });
  }
  const live = await add({ days: to + 2, connection: 4, rows: 0, status: 'running' });
  const whole = await byConnection(from, to);
  const ids = whole.items.map((one: { connection_id: string }) => one.connection_id);
  expect(ids).toEqual([1, 0, 2, 3, 4].map((at) => connections[at]));
  expect(whole.items[DELETED]).toMatchObject({ connection_deleted: true, rows_total: 5, runs: 2 });

  const page = (offset: number) => byConnection(from, to, `&limit=2&offset=${offset}`);
  const pages = [await page(0)];
  // The first day is closed.
  await closeDays(deps);
  pages.push(await page(2));
  await end(live);
  await add({ days: to - 1, connection: 4, rows: 1, status: 'succeeded' });
  await closeDays(deps);
  pages.push(await page(4), await page(6));
  expect(pages.flatMap(({ items }) => items)).toEqual(whole.items);
  expect([await page(0), await page(2)]).toEqual(pages.slice(0, 2));
  expect(pages.map(({ count }) => count)).toEqual(['5', '5', '5', '5']);
  for (const table of [connectionRuns, usageLedger]) await db.delete(table);
  expect(await byConnection(from, to)).toEqual(whole);
});

test('a closed day is read from its sums', async () => {
  await add({ days: 40, connection: 0, rows: 7, status: 'succeeded' });
  await closeDays(deps);
  const before = await totals(60, 0);
  expect(before.totals).toMatchObject({ rows_total: 7, runs: 1, succeeded_runs: 1 });
  await db.delete(usageLedger);
  await db.delete(connectionRuns);
  expect(await totals(60, 0)).toEqual(before);
});

test('usage by connection is read from the sums of its streams, also of days that an older worker has closed', async () => {
  for (const rows of [3, 4]) await add({ days: 70, connection: 0, rows, status: 'succeeded' });
  await add({ days: 41, connection: 0, rows: 2, status: 'succeeded' });
  await add({ days: 40, connection: 1, rows: 5, status: 'succeeded' });
  const read = async () => [
    await byConnection(42, 40),
    await byConnection(42, 40, '&limit=1'),
    await byConnection(90, 0),
  ];
  const before = await read();
  await closeDays(deps);
  // An older worker closes days and leaves the streams to others.
  await db.delete(streamDays).where(gt(streamDays.day, ago(70)));
  expect(await read()).toEqual(before);
  await closeDays(deps);
  expect((await db.select().from(streamDays)).map(({ day, rows_paid }) => [day, rows_paid]).toSorted()).toEqual([
    [ago(70), 7],
    [ago(41), 2],
    [ago(40), 5],
  ]);
  await db.delete(usageLedger);
  expect(await read()).toEqual(before);
});

test('a day stays open while a run of it is live', async () => {
  await add({ days: 9, connection: 0, rows: 1, status: 'succeeded' });
  const live = await add({ days: 8, connection: 1, rows: 1, status: 'running' });
  await add({ days: 7, connection: 2, rows: 1, status: 'failed' });
  const closed = async () => (await db.select().from(accountDays)).map(({ day }) => day).toSorted();
  await closeDays(deps);
  expect(await closed()).toEqual([ago(9)]);
  expect((await totals(20, 0)).totals).toMatchObject({ rows_total: 3, runs: 3, succeeded_runs: 1, failed_runs: 1 });
  await end(live);
  await closeDays(deps);
  expect(await closed()).toEqual([ago(9), ago(8), ago(7)]);
  expect((await totals(20, 0)).totals).toMatchObject({ rows_total: 3, runs: 3, succeeded_runs: 2, failed_runs: 1 });
});

test('the sums of a closed day stay when its details are deleted', async () => {
  for (const days of [410, 405, 380]) await add({ days, connection: 0, rows: 5, status: 'failed' });
  // Its newest run is kept.
  await add({ days: 1, connection: 0, rows: 5, status: 'succeeded' });
  const read = async () => [await totals(399, 0), await byConnection(399, 0)];
  await closeDays(deps);
  const before = await read();
  await deleteOldHistory({ ...deps, now: () => new Date() });
  expect(await db.select().from(runDays)).not.toEqual([]);
  await closeDays(deps);
  expect(await read()).toEqual(before);
});
