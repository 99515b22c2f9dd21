import { eq } from 'drizzle-orm';
import { cases, deliveries, events, type TriggerRow, triggers } from '../../db/schema/index.ts';
import { emit, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { evaluatePending } from '../../server/automation/evaluation/evaluation-loop.ts';
import { fireTrigger } from '../../server/automation/evaluation/fire-trigger.ts';
import type { EventKind } from '../../server/events/kinds.ts';
import type { Call } from './api.ts';
import type { TestDeps } from './database.ts';
import { uniqueName } from './resources.ts';

/** An invented connection: events need no real one. */
export const connectionId = () => Bun.randomUUIDv7();

/** Triggers created over the API, and events that fire them. */
export function firingsOf(test: TestDeps, call: Call) {
  const { deps, account_id } = test;
  const emitEvent = async (
    event: EventKind,
    facts: {
      connection_id?: string;
      connection_run_id?: string;
      causation_depth?: number;
      payload?: Record<string, unknown>;
    } = {},
  ) => {
    const { payload, ...rest } = facts;
    await emit(deps.db, {
      account_id,
      event,
      actor: SYSTEM_ACTOR,
      resource: { type: 'connection', id: rest.connection_id ?? account_id, name: 'Orders' },
      summary: `It happened: ${event}`,
      payload: { connection_name: 'Orders', error_message: 'The source is down', ...payload },
      ...rest,
    });
  };
  return {
    emitEvent,
    /** Evaluates all waiting events. */
    evaluate: () => evaluatePending(deps),
    /** Created over the API, by default with a webhook that is never called. */
    trigger: async (body: Record<string, unknown> = {}): Promise<TriggerRow> => {
      const answer = await call('POST', '/automation/triggers', {
        name: uniqueName('trigger'),
        rule: 'event == "connection_failed"',
        actions: [{ type: 'call_webhook', url: 'https://example.com/hook' }],
        ...body,
      });
      if (answer.status !== 201) throw new Error(`no trigger: ${answer.status} ${JSON.stringify(answer.body)}`);
      const [row] = await deps.db.select().from(triggers).where(eq(triggers.id, answer.body.id));
      return row!;
    },
    /** An event row that no evaluation takes. */
    event: async (event: EventKind, facts: { connection_id?: string; connection_run_id?: string } = {}) => {
      const [row] = await deps.db
        .insert(events)
        .values({
          account_id,
          event,
          category: 'run',
          severity: 'high',
          actor: SYSTEM_ACTOR,
          resource: { type: 'connection', id: account_id, name: 'Orders' },
          summary: 'It happened',
          payload: { connection_name: 'Orders', error_message: 'The source is down' },
          processing_status: 'processed',
          ...facts,
        })
        .returning();
      return row!;
    },
    /** One firing in a separate transaction. */
    fire: (firing: Parameters<typeof fireTrigger>[2]) => deps.db.transaction((tx) => fireTrigger(tx, deps, firing)),
    casesOf: (trigger: { id: string }) =>
      deps.db.select().from(cases).where(eq(cases.trigger_id, trigger.id)).orderBy(cases.number),
    deliveriesOf: (trigger: { id: string }) =>
      deps.db.select().from(deliveries).where(eq(deliveries.trigger_id, trigger.id)).orderBy(deliveries.id),
    eventsOf: (kind: EventKind) => deps.db.select().from(events).where(eq(events.event, kind)).orderBy(events.id),
  };
}
