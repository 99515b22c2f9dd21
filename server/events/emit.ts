import { sql } from 'drizzle-orm';
import { events } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { EVENT_KINDS, type EventKind } from './kinds.ts';

/** Who caused something. */
export interface Actor {
  type: 'user' | 'schedule' | 'system' | 'automation';
  id: string | null;
  name: string | null;
}

export const SYSTEM_ACTOR: Actor = { type: 'system', id: null, name: null };

export interface NewEvent {
  account_id: string;
  event: EventKind;
  actor: Actor;
  resource: { type: string; id: string; name: string | null };
  /** One sentence for people. */
  summary: string;
  /** The variables that rules see, beyond the ones of every event. */
  payload?: Record<string, unknown>;
  connection_id?: string;
  connection_run_id?: string;
  stream_run_id?: string;
  account_connector_id?: string;
  user_id?: string;
  causation_depth?: number;
}

/** The channel on which evaluators hear that there are events. A hint: they also look each second. */
export const EVENTS_CHANNEL = 'events';

/** Writes an event. `db` must be the transaction of the change that it reports, so that the two cannot disagree. */
export async function emit(db: Db, event: NewEvent): Promise<void> {
  await db
    .insert(events)
    .values({ ...event, ...EVENT_KINDS[event.event], payload: event.payload ?? {} })
    // In the same statement: a round trip less in every change.
    .returning({ told: sql`pg_notify(${EVENTS_CHANNEL}, '')` });
}
