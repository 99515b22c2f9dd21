import type { CaseRow, EventRow, TriggerRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type Actor, type Cause, emit, type NewEvent, SYSTEM_ACTOR } from './emit.ts';
import type { EventKind } from './kinds.ts';

type NamedTrigger = Pick<TriggerRow, 'id' | 'account_id' | 'name'>;

/** The actor of what a trigger does. */
export const automationActor = (trigger: Pick<TriggerRow, 'id' | 'name'>): Actor => ({
  type: 'automation',
  id: trigger.id,
  name: trigger.name,
});

const about = (trigger: NamedTrigger, payload: Record<string, unknown>) => ({
  account_id: trigger.account_id,
  resource: { type: 'trigger', id: trigger.id, name: trigger.name },
  payload: { trigger_id: trigger.id, trigger_name: trigger.name, ...payload },
});

/** What an event inherits from the event that led to it. */
const causedBy = (event: EventRow): Pick<NewEvent, 'connection_id' | 'account_connector_id' | 'causation_depth'> => ({
  connection_id: event.connection_id ?? undefined,
  account_connector_id: event.account_connector_id ?? undefined,
  causation_depth: event.causation_depth + 1,
});

const SENTENCES = {
  trigger_created: 'was created',
  trigger_updated: 'was edited',
  trigger_deleted: 'was deleted',
};

/** Emits an event about a change of a trigger by a user. */
export const emitTriggerChange = (
  { db, actor }: Cause,
  event: keyof typeof SENTENCES,
  { trigger, changed_fields = [] }: { trigger: NamedTrigger; changed_fields?: string[] },
): Promise<void> =>
  emit(db, {
    ...about(trigger, { changed_fields }),
    event,
    actor,
    summary: `Trigger "${trigger.name}" ${SENTENCES[event]}`,
  });

export const emitTriggerFired = (
  db: Db,
  {
    trigger,
    event,
    ...firing
  }: { trigger: NamedTrigger; event: EventRow; case_id: string | null; case_number: number | null },
): Promise<void> =>
  emit(db, {
    ...about(trigger, firing),
    ...causedBy(event),
    event: 'trigger_fired',
    actor: automationActor(trigger),
    summary: `Trigger "${trigger.name}" fired: ${event.summary}`,
  });

export const emitTriggerDisabled = (
  db: Db,
  { trigger, errors, last_error }: { trigger: NamedTrigger; errors: number; last_error: string | null },
): Promise<void> =>
  emit(db, {
    ...about(trigger, { error_message: last_error }),
    event: 'trigger_auto_disabled',
    actor: SYSTEM_ACTOR,
    summary: `Trigger "${trigger.name}" was disabled: its rule failed ${errors} times in a row`,
  });

export const emitActionFailed = (
  db: Db,
  failed: { trigger: NamedTrigger; event: EventRow; message: string; payload: Record<string, unknown> },
): Promise<void> =>
  emit(db, {
    ...about(failed.trigger, failed.payload),
    ...causedBy(failed.event),
    event: 'action_failed',
    actor: automationActor(failed.trigger),
    summary: `An action of the trigger "${failed.trigger.name}" failed: ${failed.message}`,
  });

export type CaseEventKind = Extract<EventKind, `case_${string}`>;

const CASE_SENTENCES: Record<CaseEventKind, string> = {
  case_opened: 'was opened',
  case_acknowledged: 'was acknowledged',
  case_resolved: 'was resolved',
  case_reopened: 'was reopened',
  case_suppressed: 'was suppressed',
};

/** Emits an event about a case. `causation_depth` is that of the event that changed the case, plus one. */
export const emitCaseEvent = (
  db: Db,
  kind: CaseEventKind,
  changed: {
    row: Pick<CaseRow, 'id' | 'account_id' | 'number' | 'title' | 'connection_id' | 'account_connector_id'>;
    trigger: Pick<TriggerRow, 'id' | 'name'>;
    actor: Actor;
    causation_depth: number;
  },
): Promise<void> => {
  const { row, trigger, actor, causation_depth } = changed;
  return emit(db, {
    account_id: row.account_id,
    event: kind,
    actor,
    resource: { type: 'case', id: row.id, name: `#${row.number}` },
    summary: `Case #${row.number} ("${row.title}") ${CASE_SENTENCES[kind]}`,
    connection_id: row.connection_id ?? undefined,
    account_connector_id: row.account_connector_id ?? undefined,
    payload: { case_id: row.id, case_number: row.number, trigger_id: trigger.id, trigger_name: trigger.name },
    causation_depth,
  });
};
