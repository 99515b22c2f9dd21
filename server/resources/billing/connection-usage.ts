import { aliasedTable, eq, inArray } from 'drizzle-orm';
import { accountConnectors, connections } from '../../../db/schema/index.ts';
import { addDays, daysIn, type DaySpan, utcDay } from '../../platform/utc-days.ts';
import type { Ctx } from '../../api/procedure.ts';
import { checkDays } from '../../api/usage-range.ts';
import { rowsByConnection, type Scope, usageByConnection, usageByDay } from './ledger.ts';
import { countRanked, type Page, rankConnections } from './rank-connections.ts';
import { countPeriod, isSummedPeriod, rankPeriod } from './rank-period.ts';
import type { ConnectionUsageSchema, UsageDays } from './schema.ts';
import { round, seriesOf, total } from './sums.ts';

/**
 * The usage of every connection with rows or runs on these days, deleted ones too: most rows first, then the oldest.
 * The header `X-Total-Count` is their number.
 */
export async function connectionUsage(
  ctx: Ctx,
  { limit, offset, ...input }: UsageDays,
): Promise<ConnectionUsageSchema[]> {
  const days = { start: input.start_date, end: input.end_date };
  checkDays(days);
  const { account_id } = ctx.principal;
  const account = { account_id, days };
  const ranking = rankingOf(ctx, account);
  const [{ ranked, sums, rowsBefore, facts }, count, all] = await Promise.all([
    readPage(ctx, account, { limit, offset, ranking }),
    ranking.then((by) => by.count(ctx.db, account)),
    usageByDay(ctx.db, account),
  ]);
  ctx.setHeader('X-Total-Count', String(count));
  const all_rows = total(all).rows_total;
  const byConnection = Map.groupBy(sums, (row) => row.connection_id);
  return ranked.flatMap(({ connection_id: id, runs }): ConnectionUsageSchema[] => {
    const connection = facts.get(id);
    if (!connection) return [];
    const own = byConnection.get(id) ?? [];
    const byDay = own.flatMap((row) => (row.day === null ? [] : [{ ...row, day: row.day }]));
    const usage = total(byDay);
    return [
      {
        ...connection,
        ...usage,
        runs,
        percent_of_total: all_rows === 0 ? 0 : round((usage.rows_total / all_rows) * 100, 2),
        previous_period_change_percent: changePercent(rowsBefore.get(id) ?? 0, usage.rows_total),
        series: seriesOf(days, byDay),
        streams: own.flatMap(({ stream_name, rows_free, rows_paid, credits_used }) =>
          stream_name === null ? [] : [{ stream_name, rows: rows_free + rows_paid, credits: credits_used }],
        ),
      },
    ];
  });
}

async function rankingOf(ctx: Ctx, account: Scope) {
  return (await isSummedPeriod(ctx.db, account))
    ? { rank: rankPeriod, count: countPeriod }
    : { rank: rankConnections, count: countRanked };
}

type Ranking = ReturnType<typeof rankingOf>;

async function readPage(ctx: Ctx, account: Scope, { ranking, ...page }: Page & { ranking: Ranking }) {
  const { rank } = await ranking;
  const ranked = await rank(ctx.db, account, page);
  const ids = ranked.map((row) => row.connection_id);
  // Only a page is filtered by ids: for all connections, the list would be long and exclude nothing.
  const scope = { ...account, ...(page.limit !== undefined && { ids }) };
  const [sums, rowsBefore, facts] = await Promise.all([
    usageByConnection(ctx.db, scope),
    rowsByConnection(ctx.db, { ...scope, days: daysBefore(account.days, utcDay(ctx.deps.now())) }),
    connectionFacts(ctx, ids),
  ]);
  return { ranked, sums, rowsBefore, facts };
}

/** The preceding days that are compared: as many as have begun, since days to come have no rows yet. */
function daysBefore(days: DaySpan, today: string): DaySpan {
  const start = addDays(days.start, -daysIn(days));
  const isOver = days.end <= today || days.start > today;
  return {
    start,
    end: isOver ? addDays(days.start, -1) : addDays(start, daysIn({ start: days.start, end: today }) - 1),
  };
}

const changePercent = (before: number, now: number) =>
  before === 0 ? null : round(((now - before) / before) * 100, 1);

async function connectionFacts(ctx: Ctx, ids: string[]) {
  if (ids.length === 0) return new Map<string, never>();
  const destination = aliasedTable(accountConnectors, 'destination');
  const rows = await ctx.db
    .select({
      connection_id: connections.id,
      connection_name: connections.name,
      deleted_at: connections.deleted_at,
      kind: connections.kind,
      source_connector_name: accountConnectors.connector_name,
      destination_connector_name: destination.connector_name,
    })
    .from(connections)
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.source_id))
    .innerJoin(destination, eq(destination.id, connections.destination_id))
    .where(inArray(connections.id, ids));
  return new Map(
    rows.map(({ deleted_at, ...row }) => [row.connection_id, { ...row, connection_deleted: deleted_at !== null }]),
  );
}
