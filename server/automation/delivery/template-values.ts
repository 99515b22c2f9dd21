import type { CaseRow, DeliveryRow, EventRow, TriggerRow } from '../../../db/schema/index.ts';
import type { DeliveryReason } from './queue-deliveries.ts';
import { eventFacts } from '../../events/variables.ts';

/** What the text of a message follows from. */
export interface Message {
  /** `test`: a message that a user asked for, of which nothing is stored. */
  delivery: Pick<DeliveryRow, 'id' | 'action_index'> & { reason: DeliveryReason | 'test' };
  trigger: Pick<TriggerRow, 'id' | 'account_id' | 'name' | 'severity' | 'actions' | 'secrets'>;
  event: EventRow;
  /** Null: the trigger opens no cases. */
  case: CaseRow | null;
  /** Number of events that a summary stands for. */
  more_events: number;
}

/** A delivery with the rows that it refers to. */
export interface DeliveryJob extends Message {
  delivery: DeliveryRow;
  trigger: TriggerRow;
}

/** The values available to templates: the variables of the event, and these. */
export function templateValues(job: Message, publicUrl: string): Record<string, unknown> {
  const { delivery, trigger, event, case: row } = job;
  return {
    ...eventFacts(event),
    summary: event.summary,
    severity: row?.severity ?? trigger.severity,
    trigger_id: trigger.id,
    trigger_name: trigger.name,
    case_id: row?.id ?? null,
    case_number: row?.number ?? null,
    case_title: row?.title ?? null,
    case_status: row?.status ?? null,
    case_url: row ? caseUrl(row, publicUrl) : null,
    event_count: row?.event_count ?? 1,
    more_events: job.more_events,
    reason: delivery.reason,
    delivery_id: delivery.id,
  };
}

export const caseUrl = (row: CaseRow, publicUrl: string) => `${publicUrl}/cases/${row.id}`;

const PREFIXES: Partial<Record<Message['delivery']['reason'], string>> = {
  reopened: 'Again',
  raised: 'More severe',
  resolved: 'Resolved',
  test: 'Test',
};

/** Prefix of a message that is not the first about its case; empty for the first. */
export function prefixOf({ delivery, more_events }: Message): string {
  if (delivery.reason === 'summary') return `+${more_events} more: `;
  const prefix = PREFIXES[delivery.reason];
  return prefix ? `${prefix}: ` : '';
}
