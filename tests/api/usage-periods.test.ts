import { beforeEach, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import fc from 'fast-check';
import {
  accountDays,
  accounts,
  connectionMonths,
  connectionPeriodChanges,
  connectionPeriods,
  connectionRuns,
  periodConnections,
  streamDays,
  usageLedger,
} from '../../db/schema/index.ts';
import { closeDays } from '../../server/billing/close-days.ts';
import { sumOldUsage } from '../../server/billing/sum-old-usage.ts';
import { sumPeriods } from '../../server/billing/sum-periods.ts';
import { addDays, addMonths, billingPeriod, type DaySpan, monthOf, utcDay } from '../../server/platform/utc-days.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { ledgerEntry } from '../support/ledger.ts';
import { makerOf } from '../support/resources.ts';

/** Months and billing periods are summed while runs start and end. Answers must be those of the runs themselves. */
const service = await testDeps();
const { deps, account_id } = service;
const { db } = deps;
const { call } = testApi(service);
const make = makerOf(call);
const connections: string[] = [];
while (connections.length < 4) connections.push((await make.connection()).id);
const today = utcDay(new Date());

beforeEach(clear);

async function clear() {
  for (const table of [connectionPeriods, periodConnections, accountDays, connectionMonths, streamDays])
    await db.delete(table);
  for (const table of [connectionRuns, usageLedger, connectionPeriodChanges]) await db.delete(table);
}

let number = 0;
interface Fact {
  ago: number;
  connection: number;
  rows: number;
}

/** A run that has ended, and what its streams loaded. */
async function add({ ago, connection, rows }: Fact): Promise<void> {
  const day = addDays(today, -ago);
  const at = `${day}T12:00:00Z`;
  const connection_id = connections[connection]!;
  const run = { account_id, connection_id, number: (number += 1), status: 'succeeded', run_type: 'plain' } as const;
  const times = { queued_at: at, created_at: at, finished_at: at };
  await db.transaction(async (tx) => {
    await tx.insert(connectionRuns).values({ ...run, ...times, trigger_type: 'api' });
    if (rows > 0) await tx.insert(usageLedger).values({ ...ledgerEntry(account_id, rows), connection_id, day });
  });
}

const setAccount = (set: Partial<typeof accounts.$inferInsert>) =>
  db.update(accounts).set(set).where(eq(accounts.id, account_id));

/** Each answer about these days, page by page and in full. */
async function read({ start, end }: DaySpan) {
  const pages = ['', '&limit=2&offset=1'].map(async (page) => {
    const { status, body, headers } = await call(
      'GET',
      `/billing/usage/connection-usage?start_date=${start}&end_date=${end}${page}`,
    );
    expect(status).toBe(200);
    return { body, count: headers.get('x-total-count') };
  });
  return Promise.all(pages);
}

/** The same from the runs and the ledger, as for an account of an earlier version. */
async function readDetails(days: DaySpan) {
  await setAccount({ periods_from: addDays(today, 1000) });
  const details = await read(days);
  await setAccount({ periods_from: '2000-01-01' });
  return details;
}

const fact = fc.record({ ago: fc.nat(100), connection: fc.nat(3), rows: fc.nat(3) });
const facts = fc.array(fact, { minLength: 1, maxLength: 12 });
const turns = fc.tuple(facts, facts, facts);

test('answers about months and billing periods are those of the runs, however much has been summed', async () => {
  const anchor = fc.integer({ min: 1, max: 31 }).map((day) => `2024-01-${String(day).padStart(2, '0')}`);
  await fc.assert(
    fc.asyncProperty(turns, fc.nat(100), anchor, async ([first, later, last], ago, billing_anchor) => {
      await clear();
      await setAccount({ billing_anchor });
      const day = addDays(today, -ago);
      const month = monthOf(day);
      const spans = [{ start: month, end: addDays(addMonths(month, 1), -1) }, billingPeriod(billing_anchor, day)];
      const compare = async () => {
        for (const span of spans) expect(await read(span)).toEqual(await readDetails(span));
      };
      for (const one of first) await add(one);
      await compare();
      await sumPeriods(deps);
      await compare();
      for (const one of later) await add(one);
      await compare();
      // Changes are taken once, whoever else takes them.
      await Promise.all([sumPeriods(deps), sumPeriods(deps), ...last.map(add), sumPeriods(deps)]);
      await compare();
      await Promise.all([sumPeriods(deps), closeDays(deps)]);
      await sumPeriods(deps);
      await compare();
      expect(await db.select().from(connectionPeriodChanges)).toEqual([]);
    }),
    { numRuns: 8, endOnFailure: true },
  );
});

test('at each moment, sums and changes together are what the ledger and the runs contain', async () => {
  const month = monthOf(today);
  const compare = async () => {
    const [totals] = await db.execute(sql`
      select ledger.rows = sums.rows + changes.rows as rows, ran.runs = sums.runs + changes.runs as runs
      from (select coalesce(sum(rows_free + rows_paid), 0) as rows from usage_ledger) ledger,
        (select count(*) as runs from connection_runs) ran,
        (select coalesce(sum(rows), 0) as rows, coalesce(sum(runs), 0) as runs from connection_periods
          where start = ${month}) sums,
        (select coalesce(sum(rows), 0) as rows, coalesce(sum(runs), 0) as runs from connection_period_changes) changes`);
    expect(totals).toEqual({ rows: true, runs: true });
  };
  const loaded = new AbortController();
  const whileLoading = async (work: () => Promise<unknown>) => {
    while (!loaded.signal.aborted) await work();
  };
  const sides = [compare, () => sumPeriods(deps), () => sumPeriods(deps)].map(whileLoading);
  const load = async () => {
    for (let count = 0; count < 60; count += 1) await add({ ago: 0, connection: count % 4, rows: 1 + (count % 3) });
  };
  await Promise.all([load(), load()]).finally(() => loaded.abort());
  await Promise.all(sides);
  await compare();
  const [page] = await read({ start: month, end: addDays(addMonths(month, 1), -1) });
  expect(page!.body.map(({ runs }: { runs: number }) => runs)).toEqual([30, 30, 30, 30]);
  expect(page!.count).toBe('4');
});

test('entries that are replaced by the sum of their day count once', async () => {
  for (const rows of [2, 3]) await add({ ago: 40, connection: 0, rows });
  const month = monthOf(addDays(today, -40));
  const span = { start: month, end: addDays(addMonths(month, 1), -1) };
  const before = await read(span);
  expect(before[0]!.body).toMatchObject([{ rows_total: 5, runs: 2 }]);
  expect(await sumOldUsage({ ...deps, config: { ...deps.config, USAGE_DETAIL_DAYS: 30 } })).toBe(2);
  expect(await read(span)).toEqual(before);
  const rows = () =>
    db.select({ rows: connectionPeriods.rows }).from(connectionPeriods).where(eq(connectionPeriods.start, month));
  await sumPeriods(deps);
  expect(await rows()).toEqual([{ rows: 5 }]);
  expect(await read(span)).toEqual(before);
});

test('a period before the day from which sums are complete is read from its days', async () => {
  await add({ ago: 0, connection: 0, rows: 5 });
  await sumPeriods(deps);
  // As in an upgrade: what was loaded before is in no sum.
  await db.delete(connectionPeriods);
  const month = monthOf(today);
  const span = { start: month, end: addDays(addMonths(month, 1), -1) };
  expect((await read(span))[0]!.body).toEqual([]);
  for (const [periods_from, rows] of [
    [addDays(today, 1), [5]],
    [addDays(month, 1), [5]],
    [month, []],
  ] as const) {
    await setAccount({ periods_from });
    const [page] = await read(span);
    expect(page!.body.map((one: { rows_total: number }) => one.rows_total)).toEqual(rows);
  }
  await setAccount({ periods_from: '2000-01-01' });
});
