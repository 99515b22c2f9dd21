import { eq, inArray } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import {
  type AccountConnectorRow,
  accountConnectors,
  type ConnectionRow,
  connections,
  type RunRow,
  type StreamRunRow,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, emit, type NewEvent, SYSTEM_ACTOR } from './emit.ts';
import type { EventKind } from './kinds.ts';
import { runStatistics, streamRowsZscore, type Usual } from './statistics.ts';

/** Sums over the streams of a run, as events and API responses show them. */
export interface RunTotals {
  rows_read: number;
  rows_loaded: number;
  rows_rejected: number;
  bytes_loaded: number;
  streams_total: number;
  streams_failed: number;
}

interface RunReport {
  event: EventKind;
  actor?: Actor;
  totals?: RunTotals;
  /** What is usual for the connection, if it is known. */
  usual?: Usual;
  extra?: Record<string, unknown>;
}

/**
 * Emits an event about a run, with the variables that rules may use. `facts`: of its connection, if they are known.
 * `earlier`: events that are emitted before it, in the same statement.
 */
export async function emitRunEvent(db: Db, about: AboutRun): Promise<void> {
  const report = await prepareRunEvent(db, about);
  await report();
}

type AboutRun = RunReport & { run: RunRow; facts?: ConnectionFacts; earlier?: readonly NewEvent[] };

/** Reads what the event needs. @returns the rest of `emitRunEvent`, which is one statement */
export async function prepareRunEvent(
  db: Db,
  { run, facts, earlier = [], ...report }: AboutRun,
): Promise<() => Promise<void>> {
  const known = facts ?? (await connectionFacts(db, run.connection_id));
  const event = await runEvent(db, { run, facts: known, report });
  return () => emit(db, ...earlier, event);
}

/** Emits the same event about several runs, in their order. */
export async function emitRunEvents(db: Db, { runs, ...report }: RunReport & { runs: RunRow[] }): Promise<void> {
  if (runs.length === 0) return;
  const facts = await factsByConnection(db, [...new Set(runs.map((run) => run.connection_id))]);
  const reported: NewEvent[] = [];
  for (const run of runs)
    reported.push(await runEvent(db, { run, facts: knownFacts(facts, run.connection_id), report }));
  await emit(db, ...reported);
}

async function runEvent(
  db: Db,
  { run, facts, report }: { run: RunRow; facts: ConnectionFacts; report: RunReport },
): Promise<NewEvent> {
  const { event, totals } = report;
  const ran = runFacts(run);
  const statistics =
    totals && WITH_STATISTICS.has(event)
      ? await runStatistics(db, { ...run, ...totals, duration_ms: ran.duration_ms }, report.usual?.run)
      : {};
  return {
    account_id: run.account_id,
    event,
    actor: report.actor ?? SYSTEM_ACTOR,
    resource: { type: 'connection_run', id: run.id, name: `${facts.connection_name} #${run.number}` },
    summary: `${SENTENCES[event] ?? event} (${facts.connection_name}, run ${run.number})`,
    connection_id: run.connection_id,
    connection_run_id: run.id,
    payload: { ...facts, ...ran, ...totals, ...statistics, ...report.extra },
    causation_depth: run.causation_depth,
  };
}

const WITH_STATISTICS: ReadonlySet<EventKind> = new Set([
  'connection_succeeded',
  'connection_failed',
  'connection_partially_failed',
] as const);

interface StreamReport {
  event: EventKind;
  run: RunRow;
  stream: StreamRunRow;
}

/** Emits an event about a stream run. */
export async function emitStreamEvent(db: Db, report: StreamReport): Promise<void> {
  await emit(db, await streamEvent(db, report, await connectionFacts(db, report.run.connection_id)));
}

/** The event about a stream run, which the caller has emitted with others. */
export async function streamEvent(
  db: Db,
  { event, run, stream }: StreamReport,
  facts: ConnectionFacts,
  usual?: Usual,
): Promise<NewEvent> {
  return {
    account_id: run.account_id,
    event,
    actor: SYSTEM_ACTOR,
    resource: { type: 'stream_run', id: stream.id, name: stream.stream_name },
    summary: `${SENTENCES[event] ?? event}: ${stream.stream_name} (${facts.connection_name}, run ${run.number})`,
    connection_id: run.connection_id,
    connection_run_id: run.id,
    stream_run_id: stream.id,
    causation_depth: run.causation_depth,
    payload: {
      ...facts,
      ...runFacts(run),
      attempt: stream.attempt,
      duration_ms: durationOf(stream),
      stream_run_id: stream.id,
      stream_id: stream.stream_id,
      stream_name: stream.stream_name,
      namespace: stream.namespace,
      rows_read: stream.rows_read,
      rows_loaded: stream.rows_loaded,
      rows_rejected: stream.rows_rejected,
      bytes_loaded: stream.bytes_loaded,
      rows_loaded_zscore: stream.status === 'succeeded' ? await streamRowsZscore(db, stream, usual?.stream) : null,
      rate_limited_until: stream.rate_limited_until,
      error_code: stream.error?.code ?? null,
      error_type: stream.error?.type ?? null,
      error_origin: stream.error?.origin ?? null,
      error_message: stream.error?.message ?? null,
      retryable: stream.error?.retryable ?? null,
    },
  };
}

const SENTENCES: Partial<Record<EventKind, string>> = {
  connection_run_queued: 'Run queued',
  connection_run_started: 'Run started',
  connection_run_retrying: 'Run waiting for the next attempt',
  connection_run_stopped: 'Run stopped',
  connection_run_skipped: 'Run skipped',
  connection_succeeded: 'Run succeeded',
  connection_failed: 'Run failed',
  connection_partially_failed: 'Run partially failed',
  stream_run_succeeded: 'Stream succeeded',
  stream_run_failed: 'Stream failed',
  stream_run_stopped: 'Stream stopped',
  stream_run_rate_limited: 'Stream waiting for the rate limit',
};

function runFacts(run: RunRow) {
  return {
    connection_run_id: run.id,
    run_number: run.number,
    run_type: run.run_type,
    trigger_type: run.trigger_type,
    attempt: run.attempt,
    skip_reason: run.skip_reason,
    stopped_by: run.stop_requested_by,
    window_start: run.window_start,
    window_end: run.window_end,
    duration_ms: durationOf(run),
    plan_id: run.custom_run_plan_id,
    credits_used: run.credits_used,
  };
}

/** Up to now for what has not ended; null before it has started. */
function durationOf({ started_at, finished_at }: { started_at: string | null; finished_at: string | null }) {
  if (started_at === null) return null;
  return Math.max(0, (finished_at ? Date.parse(finished_at) : Date.now()) - Date.parse(started_at));
}

/** The variables of an event's connection. */
export async function connectionFacts(db: Db, connection_id: string): Promise<ConnectionFacts> {
  return knownFacts(await factsByConnection(db, [connection_id]), connection_id);
}

/** The variables of several connections, by their ids. */
export async function factsByConnection(db: Db, connection_ids: string[]): Promise<Map<string, ConnectionFacts>> {
  const rows = await db
    .select({ connection: connections, source: endOf(sourceEnd), destination: endOf(destinationEnd) })
    .from(connections)
    .innerJoin(sourceEnd, eq(sourceEnd.id, connections.source_id))
    .innerJoin(destinationEnd, eq(destinationEnd.id, connections.destination_id))
    .where(inArray(connections.id, connection_ids));
  return new Map(rows.map((row) => [row.connection.id, factsOf(row.connection, [row.source, row.destination])]));
}

const sourceEnd = alias(accountConnectors, 'source');
const destinationEnd = alias(accountConnectors, 'destination');
const endOf = ({ id, name, connector_name }: typeof sourceEnd | typeof destinationEnd) => ({
  id,
  name,
  connector_name,
});

function knownFacts(facts: ReadonlyMap<string, ConnectionFacts>, connection_id: string): ConnectionFacts {
  const known = facts.get(connection_id);
  if (!known) throw new Error(`connection ${connection_id} does not exist`);
  return known;
}

/** A source or a destination. */
export type End = Pick<AccountConnectorRow, 'id' | 'name' | 'connector_name'>;

export const endsOf = (db: Db, connection: Pick<ConnectionRow, 'source_id' | 'destination_id'>): Promise<End[]> =>
  db
    .select({
      id: accountConnectors.id,
      name: accountConnectors.name,
      connector_name: accountConnectors.connector_name,
    })
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [connection.source_id, connection.destination_id]));

export type ConnectionFacts = ReturnType<typeof factsOf>;

/** The same for a connection that has been read, with its source and destination. */
export function factsOf(connection: ConnectionRow, ends: readonly End[]) {
  const source = ends.find((row) => row.id === connection.source_id);
  const destination = ends.find((row) => row.id === connection.destination_id);
  return {
    connection_id: connection.id,
    connection_name: connection.name,
    kind: connection.kind,
    status: connection.status,
    status_reason: connection.status_reason,
    source_id: connection.source_id,
    source_name: source?.name ?? null,
    source_connector_name: source?.connector_name ?? null,
    destination_id: connection.destination_id,
    destination_name: destination?.name ?? null,
    destination_connector_name: destination?.connector_name ?? null,
    tags: connection.tags,
    notify_on_failure: connection.notify_on_failure,
    retry_count: connection.consecutive_failures,
  };
}
