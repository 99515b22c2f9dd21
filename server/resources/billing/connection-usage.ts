import { aliasedTable, eq, inArray } from 'drizzle-orm';
import { accountConnectors, connections } from '../../../db/schema/index.ts';
import { addDays, type DaySpan, daysIn } from '../../lib/utc-days.ts';
import type { Ctx } from '../../procedure.ts';
import { checkDays } from '../usage-range.ts';
import { rowsByConnection, runsByConnection, usageByConnectionDay, usageByStream } from './ledger.ts';
import type { ConnectionUsageSchema, UsageDays } from './schema.ts';
import { round, seriesOf, total } from './sums.ts';

/** Usage of every connection that had rows or runs on these days, deleted ones too; most rows first, then by name and id. */
export async function connectionUsage(ctx: Ctx, input: UsageDays): Promise<ConnectionUsageSchema[]> {
  const days = { start: input.start_date, end: input.end_date };
  checkDays(days);
  const { account_id } = ctx.principal;
  const scope = { account_id, days };
  const [byDay, byStream, before, runs] = await Promise.all([
    usageByConnectionDay(ctx.db, scope),
    usageByStream(ctx.db, scope),
    rowsByConnection(ctx.db, { account_id, days: daysBefore(days) }),
    runsByConnection(ctx.db, scope),
  ]);
  const amounts = Map.groupBy(byDay, (row) => row.connection_id);
  const streams = Map.groupBy(byStream, (row) => row.connection_id);
  const rowsBefore = new Map(before.map((row) => [row.connection_id, row.rows]));
  const runsOf = new Map(runs.map((row) => [row.connection_id, row.runs]));
  const all = total(byDay).rows_total;
  const facts = await connectionFacts(ctx, [...new Set([...amounts.keys(), ...runsOf.keys()])]);
  const usage = facts.map((connection): ConnectionUsageSchema => {
    const id = connection.connection_id;
    const own = total(amounts.get(id) ?? []);
    return {
      ...connection,
      ...own,
      runs: runsOf.get(id) ?? 0,
      percent_of_total: all === 0 ? 0 : round((own.rows_total / all) * 100, 2),
      previous_period_change_percent: changePercent(rowsBefore.get(id) ?? 0, own.rows_total),
      series: seriesOf(days, amounts.get(id) ?? []),
      streams: (streams.get(id) ?? []).map(({ stream_name, rows_free, rows_paid, credits_used }) => ({
        stream_name,
        rows: rows_free + rows_paid,
        credits: credits_used,
      })),
    };
  });
  return usage.toSorted(byRowsThenName);
}

const byRowsThenName = (a: ConnectionUsageSchema, b: ConnectionUsageSchema) =>
  b.rows_total - a.rows_total ||
  a.connection_name.localeCompare(b.connection_name, 'en') ||
  (a.connection_id < b.connection_id ? -1 : 1);

/** As many days, ending on the day before. */
const daysBefore = (days: DaySpan): DaySpan => ({
  start: addDays(days.start, -daysIn(days)),
  end: addDays(days.start, -1),
});

const changePercent = (before: number, now: number) =>
  before === 0 ? null : round(((now - before) / before) * 100, 1);

async function connectionFacts(ctx: Ctx, ids: string[]) {
  if (ids.length === 0) return [];
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
  return rows.map(({ deleted_at, ...row }) => ({ ...row, connection_deleted: deleted_at !== null }));
}
