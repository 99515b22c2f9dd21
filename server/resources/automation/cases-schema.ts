import { z } from 'zod';
import { ACTION_TYPES, ACTOR_TYPES, CASE_ENTRIES, DELIVERY_REASONS } from '../../../db/schema/index.ts';
import { instant, PageQuery, UserReference, whole } from '../../api/wire-types.ts';
import { EventSchema, Severity } from './events-schema.ts';

export const CaseStatus = z.enum(['open', 'acknowledged', 'resolved', 'suppressed']).meta({ id: 'CaseStatus' });

const CaseTimelineEntry = z
  .object({
    at: instant(),
    type: z.enum(CASE_ENTRIES),
    actor: z
      .object({ type: z.enum(ACTOR_TYPES), id: z.string().nullable(), name: z.string().nullable() })
      .nullable()
      .meta({ description: 'Null for acts of the service.' }),
    note: z.string().nullable(),
  })
  .meta({ id: 'CaseTimelineEntry' });

const CaseDelivery = z
  .object({
    id: z.string().meta({ description: 'Identifies repetitions for the receiver.' }),
    event_id: z.string(),
    action_index: whole(),
    type: z.enum(ACTION_TYPES),
    reason: z.enum(DELIVERY_REASONS).meta({
      description: 'What happened to the case: opened, reopened, raised, joined, repeated, summary or resolved.',
    }),
    status: z.enum(['pending', 'retrying', 'delivered', 'failed', 'suppressed', 'cancelled']),
    attempts: whole(),
    last_attempt_at: instant().nullable(),
    next_attempt_at: instant().nullable(),
    held_until: instant().nullable().meta({ description: 'The end of the quiet hours for which it waits.' }),
    delivered_to: z.array(z.string()).meta({
      description: 'Recipients of an email who have it already, while others wait for the end of their quiet hours.',
    }),
    delivered_at: instant().nullable(),
    error: z.string().nullable(),
    created_at: instant(),
  })
  .meta({ id: 'CaseDelivery' });

export const CaseSchema = z
  .object({
    id: z.string(),
    account_id: z.string(),
    number: whole().meta({ description: 'Sequential within the account.' }),
    title: z.string(),
    status: CaseStatus,
    severity: Severity,
    trigger_id: z.string(),
    trigger_name: z.string(),
    dedup_key: z.string(),
    group: z.record(z.string(), z.unknown()),
    connection_id: z.string().nullable(),
    account_connector_id: z.string().nullable(),
    event_count: whole(),
    first_event_at: instant(),
    last_event_at: instant(),
    opened_at: instant(),
    acknowledged_at: instant().nullable(),
    acknowledged_by: UserReference.nullable(),
    resolved_at: instant().nullable(),
    resolved_by: UserReference.nullable(),
    resolution: z.enum(['manual', 'auto', 'trigger_deleted']).nullable(),
    reopened_count: whole(),
    last_error: z.string().nullable(),
    latest_events: z.array(EventSchema).nullable().meta({ description: 'The last 20, newest first; null in lists.' }),
    timeline: z.array(CaseTimelineEntry).nullable().meta({ description: 'Oldest first; null in lists.' }),
    deliveries: z
      .array(CaseDelivery)
      .nullable()
      .meta({ description: 'The last 100, suppressed ones after the others, newest first; null in lists.' }),
    created_at: instant(),
    updated_at: instant(),
  })
  .meta({ id: 'CaseSchema' });
export type CaseSchema = z.infer<typeof CaseSchema>;

export const CaseQuery = PageQuery.extend({
  status: CaseStatus.optional().meta({ description: 'Only cases in this state.' }),
  severity: Severity.optional(),
  trigger_id: z.string().optional().meta({ description: 'Only cases of this trigger.' }),
});
export type CaseQuery = z.infer<typeof CaseQuery>;

export const ChatChannelSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    is_private: z.boolean(),
    is_member: z.boolean(),
    is_archived: z.boolean(),
    member_count: whole().nullable(),
  })
  .meta({ id: 'ChatChannel' });
export type ChatChannelSchema = z.infer<typeof ChatChannelSchema>;
