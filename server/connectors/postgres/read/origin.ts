import type { ConnectorContext, OriginComparison } from '../../contract/connector.ts';
import { ConnectorError } from '../../contract/errors.ts';
import { lsnText, lsnValue } from '../connection/lsn.ts';
import { type PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { timelineEnd } from '../connection/timeline.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Which server was read, and how far its log was on disk before the read. */
type ServerOrigin = {
  system_identifier: string;
  /** Null: a standby, which learns of a new timeline late. */
  timeline: number | null;
  position: string;
};

/** Servers that share their storage, such as Aurora's, have positions of their own. */
const CAN_ASK = `
  select coalesce(bool_and(has_function_privilege(p.oid, 'execute')), false) and count(*) = 2
         and to_regproc('aurora_version') is null
    from pg_proc p
   where p.pronamespace = 'pg_catalog'::regnamespace and p.proname in ('pg_control_system', 'pg_current_wal_flush_lsn')`;

const FIND = `
  select system_identifier::text,
         case when not standby then ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int end,
         case when standby then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end::text
    from pg_control_system(), pg_is_in_recovery() standby`;

/** Null: the server has no such functions, or refuses them to this user. */
export const findOrigin = (ctx: Context): Promise<ServerOrigin | null> =>
  withSession(ctx, { phase: 'run' }, async (session) => {
    try {
      const { rows: asked } = await session.query(CAN_ASK);
      if (asked[0]?.[0] !== 't') return null;
      const { rows } = await session.query(FIND);
      const [system_identifier, timeline, position] = rows[0] ?? [];
      if (system_identifier == null || position == null) return null;
      const found: ServerOrigin = {
        system_identifier,
        timeline: timeline == null ? null : Number(timeline),
        position: lsnText(lsnValue(position)),
      };
      return found;
    } catch (error) {
      // Servers that only speak the protocol lack some of it.
      if (error instanceof ConnectorError && !error.retryable) return null;
      throw error;
    }
  });

export async function compareOrigins(
  ctx: Context,
  known: ServerOrigin,
  found: ServerOrigin,
): Promise<OriginComparison> {
  if (known.system_identifier !== found.system_identifier) {
    const difference = `it was read from the server ${known.system_identifier}, and this is ${found.system_identifier}`;
    return { history: 'lost', difference, origin: found };
  }
  // A standby may lag behind what was read elsewhere, and gets it later.
  if (found.timeline === null) return { history: 'kept', difference: '', origin: known };
  const isShort = lsnValue(found.position) < lsnValue(known.position);
  if (known.timeline === found.timeline) {
    const difference = `the server has its log up to ${found.position}, and it was read when the log was at ${known.position}. The server was set back to an older copy of itself`;
    return { history: isShort ? 'lost' : 'kept', difference, origin: found };
  }
  if (known.timeline === null && !isShort) return { history: 'kept', difference: '', origin: found };
  const end = known.timeline === null ? null : await endOf(ctx, known.timeline, found.timeline);
  if (end !== null && end >= lsnValue(known.position)) return { history: 'kept', difference: '', origin: found };
  const parted = end === null ? '' : `, which left the old one at ${lsnText(end)}`;
  const difference = `it was read when the log was at ${known.position} on timeline ${known.timeline ?? 'unknown'}, and the server is at ${found.position} on timeline ${found.timeline}${parted}`;
  return { history: 'unknown', difference, origin: found };
}

/** Where a timeline ends in the history of the current one. Null: the user has no right to ask. */
async function endOf(ctx: Context, timeline: number, current: number): Promise<bigint | null> {
  const ask = (session: PgSession) => timelineEnd(session, timeline, current);
  try {
    return await withSession(ctx, { phase: 'run', replication: 'database' }, ask);
  } catch (error) {
    if (error instanceof ConnectorError && !error.retryable) return null;
    throw error;
  }
}
