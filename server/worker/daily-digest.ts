import { and, desc, eq, gte, inArray, isNotNull, isNull, lt, lte, sql } from 'drizzle-orm';
import {
  accounts,
  cases,
  connectionRuns,
  connections,
  notificationSettings,
  streamRuns,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { type Digest, emitDailyDigest } from '../events/digest-events.ts';
import { latestDaily, nextDaily } from '../pipeline/daily-times.ts';
import { lastOnTime, minutesLateOf } from './data-delays.ts';

/** Names of a kind in one message. */
const MAX_NAMES = 10;

/**
 * Emits `daily_digest` for each account whose time has come. Once a day, with any number of workers; after a downtime one
 * digest covers all of it. Returns the number of events.
 */
export async function sendDailyDigests({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<number> {
  for (let sent = 0; ; sent++) {
    if (!(await db.transaction((tx) => sendNext(tx, now())))) return sent;
  }
}

async function sendNext(tx: Db, now: Date): Promise<boolean> {
  const [due] = await tx
    .select({ settings: notificationSettings, timezone: accounts.timezone })
    .from(notificationSettings)
    .innerJoin(accounts, eq(accounts.id, notificationSettings.account_id))
    .where(lte(notificationSettings.next_digest_at, now.toISOString()))
    .limit(1)
    .for('no key update', { of: notificationSettings, skipLocked: true });
  if (!due) return false;
  const { account_id, digest_at, next_digest_at } = due.settings;
  const timezone = due.settings.timezone ?? due.timezone;
  // From the digest before the one that is due.
  const from = latestDaily(digest_at!, { timezone, until: new Date(Date.parse(next_digest_at!) - 1) });
  const next = nextDaily(digest_at!, { timezone, after: now });
  await tx
    .update(notificationSettings)
    .set({ next_digest_at: next.toISOString() })
    .where(eq(notificationSettings.account_id, account_id));
  await emitDailyDigest(tx, account_id, await digestOf(tx, { account_id, from, until: now }));
  return true;
}

interface Period {
  account_id: string;
  from: Date;
  until: Date;
}

async function digestOf(db: Db, period: Period): Promise<Digest> {
  const { from, until } = period;
  const [counts, failed_connections, open, late] = [
    await countRuns(db, period),
    await failedConnections(db, period),
    await openCases(db, period),
    await lateConnections(db, period),
  ];
  return { from, until, ...counts, failed_connections, ...open, late_connections: late };
}

const FAILED: ('failed' | 'partially_succeeded')[] = ['failed', 'partially_succeeded'];

const ended = ({ account_id, from, until }: Period) =>
  and(
    eq(connectionRuns.account_id, account_id),
    gte(connectionRuns.finished_at, from.toISOString()),
    lt(connectionRuns.finished_at, until.toISOString()),
  );

async function countRuns(db: Db, period: Period) {
  const [row] = await db
    .select({
      runs_total: sql`count(*)`.mapWith(Number),
      runs_failed: sql`count(*) filter (where ${inArray(connectionRuns.status, FAILED)})`.mapWith(Number),
      rows_loaded: sql`coalesce(sum((select sum(s.rows_loaded) from ${streamRuns} s
        where s.connection_run_id = ${connectionRuns.id})), 0)`.mapWith(Number),
    })
    .from(connectionRuns)
    .where(ended(period));
  return row!;
}

async function failedConnections(db: Db, period: Period): Promise<string[]> {
  const rows = await db
    .selectDistinct({ name: connections.name })
    .from(connectionRuns)
    .innerJoin(connections, and(eq(connections.id, connectionRuns.connection_id), isNull(connections.deleted_at)))
    .where(and(ended(period), inArray(connectionRuns.status, FAILED)))
    .orderBy(connections.name)
    .limit(MAX_NAMES);
  return rows.map(({ name }) => name);
}

async function openCases(db: Db, { account_id }: Period) {
  const open = and(eq(cases.account_id, account_id), inArray(cases.status, ['open', 'acknowledged']));
  const newest = await db
    .select({ number: cases.number, title: cases.title })
    .from(cases)
    .where(open)
    .orderBy(desc(cases.opened_at))
    .limit(MAX_NAMES);
  return {
    open_cases: await db.$count(cases, open),
    open_case_titles: newest.map(({ number, title }) => `#${number} ${title}`),
  };
}

/** Connections whose delay was announced and has not ended, with how late each is. */
async function lateConnections(db: Db, { account_id, until }: Period): Promise<string[]> {
  const rows = await db
    .select()
    .from(connections)
    .where(
      and(
        eq(connections.account_id, account_id),
        eq(connections.status, 'active'),
        isNull(connections.deleted_at),
        isNotNull(connections.delay_told_at),
        sql`${connections.delay_told_at} >= ${lastOnTime}`,
      ),
    )
    .orderBy(connections.name);
  return rows.flatMap((connection) => {
    const minutes = minutesLateOf(connection, until);
    return minutes === null ? [] : [`${connection.name} (${minutes} min)`];
  });
}
