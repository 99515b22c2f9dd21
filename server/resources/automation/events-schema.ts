import { z } from 'zod';
import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { instant, moment, whole } from '../../api/wire-types.ts';

/** Every kind of event. */
export const EventType = z.enum(Object.keys(EVENT_KINDS) as [EventKind, ...EventKind[]]).meta({ id: 'EventType' });

export const Severity = z.enum(['critical', 'high', 'warning', 'info', 'low']).meta({ id: 'Severity' });

export const EventCategory = z
  .enum([
    'connection',
    'run',
    'stream',
    'account_connector',
    'user',
    'role',
    'billing',
    'automation',
    'schema',
    'api_key',
  ])
  .meta({ id: 'EventCategory' });

const reference = () => z.string().nullable();

export const EventSchema = z
  .object({
    id: z.string(),
    account_id: z.string(),
    event: EventType,
    category: EventCategory,
    severity: Severity,
    occurred_at: instant(),
    actor: z.object({ type: z.enum(['user', 'schedule', 'system', 'automation']), id: reference(), name: reference() }),
    resource: z.object({ type: z.string(), id: z.string(), name: reference() }),
    connection_id: reference(),
    connection_run_id: reference(),
    stream_run_id: reference(),
    account_connector_id: reference(),
    user_id: reference(),
    summary: z.string(),
    payload: z
      .record(z.string(), z.unknown())
      .meta({ description: 'All variables that rules on this kind can use. Null where the event has no value.' }),
    matched_trigger_ids: z.array(z.string()),
    case_ids: z.array(z.string()),
    processing_status: z.enum(['received', 'evaluating', 'processed', 'failed']),
    causation_depth: whole(),
  })
  .meta({ id: 'EventSchema' });
export type EventSchema = z.infer<typeof EventSchema>;

export const EventQuery = z.object({
  limit: z.int().min(1).max(1000).default(100).meta({ description: 'Maximum number of events.' }),
  offset: z.int().min(0).max(100_000).default(0).meta({ description: 'Number of events to skip.' }),
  event: EventType.optional().meta({ description: 'Only events of this kind.' }),
  category: EventCategory.optional(),
  severity: Severity.optional(),
  connection_id: z.string().optional().meta({ description: 'Only events about this connection.' }),
  after: z
    .string()
    .optional()
    .meta({
      description:
        'The id of an event: returns the events after it, oldest first. Repeated with the id of the last event received, ' +
        'it misses none. An event appears once all that began before it have been stored.',
    }),
  from: moment().optional().meta({ description: 'Only events at or after this time.' }),
  to: moment().optional().meta({ description: 'Only events before this time.' }),
});
export type EventQuery = z.infer<typeof EventQuery>;
