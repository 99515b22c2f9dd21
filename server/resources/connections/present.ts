import { LRUCache } from 'lru-cache';
import { findConnector } from '../../connectors/registry.ts';
import { describeSchedule, isContinuous, nextTicks, type Schedule } from '../../pipeline/schedule.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import { canShowOneMoment } from '../../runs/snapshot/members.ts';
import type { ConnectionRecord } from './query.ts';
import type { ConnectionSchedule } from './schedule-schema.ts';
import type { ConnectionSchema } from './schema.ts';

const NEXT_RUNS = 5;
const FAILING_AFTER = 3;

/** A connection in its wire form. */
export function presentConnection(record: ConnectionRecord, now: Date): ConnectionSchema {
  const { connection, next_verification_at, last_run, active_run_id, log_lag } = record;
  const schedule = presented(connection.schedule, connection.next_run_at);
  return {
    ...connection,
    // A continuous connection has no ticks: its next run begins when the one before it ends.
    next_run_at: isContinuous(connection.schedule) ? null : connection.next_run_at,
    consistency_in_effect: canShowOneMoment(record) ? connection.consistency : 'stream',
    source: summary('source', record.source),
    destination: summary('destination', record.destination),
    health: healthOf(record, schedule.next_runs, now),
    schedule,
    verification_schedule:
      connection.verification_schedule &&
      presented(connection.verification_schedule, connection.status === 'active' ? next_verification_at : null),
    streams: record.streams,
    last_run,
    active_run_id,
    log_lag,
    created_by: record.created_by,
    updated_by: record.updated_by,
  };
}

function summary(
  connector_type: 'source' | 'destination',
  { parameters: _parameters, ...side }: ConnectionRecord['source'],
) {
  const connector =
    connector_type === 'source'
      ? findConnector('source', side.connector_name)
      : findConnector('destination', side.connector_name);
  return { ...side, connector_type, display_name: connector?.display_name ?? side.connector_name, icon_url: null };
}

const presented = (schedule: Schedule, next_at: string | null): ConnectionSchedule => ({
  ...schedule,
  description: describeSchedule(schedule),
  next_runs: upcoming(schedule, next_at),
});

const upcomingTicks = new LRUCache<string, string[]>({ max: 2000 });

/** The stored tick and the four after it. Cached: time zones make a tick cost 70 µs, and lists need many. */
function upcoming(schedule: Schedule, next_run_at: string | null): string[] {
  if (next_run_at === null || isContinuous(schedule)) return [];
  const key = JSON.stringify([schedule, next_run_at]);
  const known = upcomingTicks.get(key);
  if (known) return known;
  const from = { anchor: new Date(next_run_at), after: new Date(next_run_at) };
  const ticks = [next_run_at, ...nextTicks(schedule, from, NEXT_RUNS - 1).map((tick) => tick.toISOString())];
  upcomingTicks.set(key, ticks);
  return ticks;
}

function healthOf(record: ConnectionRecord, ticks: string[], now: Date): ConnectionSchema['health'] {
  const { connection, last_run } = record;
  const { status, consecutive_failures } = connection;
  if (status === 'locked' || status === 'auto_disabled' || consecutive_failures >= FAILING_AFTER) return 'failing';
  // A resumed connection counts its failures anew, and yet its tables are as the failed run left them.
  const isIncomplete = last_run?.status === 'failed' || last_run?.status === 'partially_succeeded';
  if (consecutive_failures > 0 || isIncomplete) return 'warning';
  if (isStale(connection, ticks, now)) return 'warning';
  if (record.active_run_id !== null || (last_run && isLiveRun(last_run.status))) return 'running';
  if (!last_run) return 'pending';
  // Nothing has run instead of it.
  return last_run.status === 'skipped' && last_run.error !== null ? 'warning' : 'healthy';
}

/** No success for two intervals while the schedule is active. */
function isStale(connection: ConnectionRecord['connection'], ticks: string[], now: Date): boolean {
  const [first, second] = ticks;
  if (!first || !second || connection.last_succeeded_at === null) return false;
  const interval = Date.parse(second) - Date.parse(first);
  return now.getTime() - Date.parse(connection.last_succeeded_at) > 2 * interval;
}
