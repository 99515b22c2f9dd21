import { and, eq, gt, isNotNull, isNull, sql } from 'drizzle-orm';
import { type ConnectionRow, connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { emitConnectionChange } from '../events/connection-events.ts';
import { nextTicks, type Schedule } from '../pipeline/schedule.ts';

const MINUTE = 60_000;
const PAGE = 500;

/** The last time at which data was on time: the last success, or the instant at which the schedule began to tick. */
export const lastOnTime = sql<string>`greatest(${connections.last_succeeded_at}, ${connections.ticking_since})`;

const lastOnTimeOf = ({ last_succeeded_at, ticking_since }: ConnectionRow) =>
  new Date(Math.max(Date.parse(ticking_since), Date.parse(last_succeeded_at ?? ticking_since)));

/** As `minutesLate`, for a connection at this moment. */
export const minutesLateOf = (connection: ConnectionRow, now: Date): number | null =>
  minutesLate(connection.schedule, { from: lastOnTimeOf(connection), now });

/** Connections that may have missed two ticks. For cron schedules this is only a first filter. */
const suspect = (now: string) =>
  and(
    eq(connections.status, 'active'),
    isNull(connections.deleted_at),
    isNotNull(connections.next_run_at),
    sql`(${connections.delay_told_at} is null or ${connections.delay_told_at} < ${lastOnTime})`,
    sql`case when ${connections.schedule} ->> 'interval_minutes' is not null
      then ${lastOnTime} < ${now}::timestamptz - 2 * make_interval(mins => (${connections.schedule} ->> 'interval_minutes')::int)
      else exists (select from connection_runs r where r.connection_id = ${connections.id} and r.created_at > ${lastOnTime})
    end`,
  );

/**
 * Emits `data_delayed` for each connection without success for twice its interval. Once per delay, with any number of
 * workers. Returns the number of events.
 */
export async function announceDelays({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<number> {
  let announced = 0;
  for (let after: string | null = null; ; ) {
    const page: { id: string }[] = await db
      .select({ id: connections.id })
      .from(connections)
      .where(and(suspect(now().toISOString()), after === null ? undefined : gt(connections.id, after)))
      .orderBy(connections.id)
      .limit(PAGE);
    for (const { id } of page) {
      if (await db.transaction((tx) => announceDelay(tx, id, now()))) announced += 1;
    }
    if (page.length < PAGE) return announced;
    after = page.at(-1)!.id;
  }
}

async function announceDelay(db: Db, id: string, now: Date): Promise<boolean> {
  const [connection] = await db
    .select()
    .from(connections)
    .where(and(eq(connections.id, id), suspect(now.toISOString())))
    .for('no key update', { skipLocked: true });
  if (!connection) return false;
  const minutes_late = minutesLateOf(connection, now);
  if (minutes_late === null) return false;
  await db.update(connections).set({ delay_told_at: now.toISOString() }).where(eq(connections.id, id));
  await emitConnectionChange(db, {
    event: 'data_delayed',
    connection,
    sentence: `is ${minutes_late} minutes late`,
    changed_fields: [],
    extra: { minutes_late },
  });
  return true;
}

/**
 * Whole minutes since data was due, for a connection without success since `from`. Null until it has missed two ticks and
 * twice its interval has passed. Pure.
 */
export function minutesLate(schedule: Schedule, { from, now }: { from: Date; now: Date }): number | null {
  const [due, second] = nextTicks(schedule, { anchor: from, after: from }, 2).map((tick) => tick.getTime());
  if (due === undefined || second === undefined) return null;
  const delayed = Math.max(second, from.getTime() + 2 * (second - due));
  return now.getTime() > delayed ? Math.floor((now.getTime() - due) / MINUTE) : null;
}
