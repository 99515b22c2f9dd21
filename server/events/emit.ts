import { sql } from 'drizzle-orm';
import { events } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { EVENT_KINDS, type EventKind } from './kinds.ts';

/** What caused an event. */
export interface Actor {
  type: 'user' | 'schedule' | 'system' | 'automation';
  id: string | null;
  name: string | null;
}

/** The transaction of a change and what caused it. */
export interface Cause {
  db: Db;
  actor: Actor;
}

export const SYSTEM_ACTOR: Actor = { type: 'system', id: null, name: null };

export interface NewEvent {
  account_id: string;
  event: EventKind;
  actor: Actor;
  resource: { type: string; id: string; name: string | null };
  /** One sentence, shown to users. */
  summary: string;
  /** Variables for rules, beyond those that every event has. */
  payload?: Record<string, unknown>;
  connection_id?: string;
  connection_run_id?: string;
  stream_run_id?: string;
  account_connector_id?: string;
  user_id?: string;
  causation_depth?: number;
}

/** Evaluators listen here for new events. Only a hint: they also check every second. */
export const EVENTS_CHANNEL = 'events';

/** Stores events. `db` must be the transaction of the change that they report, so that both are committed or neither. */
export async function emit(db: Db, ...reported: NewEvent[]): Promise<void> {
  if (reported.length === 0) return;
  await db
    .insert(events)
    .values(reported.map((event) => ({ ...event, ...EVENT_KINDS[event.event], payload: event.payload ?? {} })))
    // In the same statement, which saves every change a round trip.
    .returning({ notified: sql`pg_notify(${EVENTS_CHANNEL}, '')` });
}
