import type { CaseRow, DeliveryRow, EventRow, TriggerRow } from '../../../db/schema/index.ts';
import type { DeliveryReason } from './queue-deliveries.ts';
import { eventFacts } from '../../events/variables.ts';

/** A delivery with the rows that it refers to. */
export interface DeliveryJob {
  delivery: DeliveryRow;
  trigger: TriggerRow;
  event: EventRow;
  /** Null: the trigger opens no cases. */
  case: CaseRow | null;
  /** Number of events that a summary stands for. */
  more_events: number;
}

/** The values available to templates: the variables of the event, and these. */
export function templateValues(job: DeliveryJob, publicUrl: string): Record<string, unknown> {
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

const PREFIXES: Partial<Record<DeliveryReason, string>> = {
  reopened: 'Again',
  raised: 'More severe',
  resolved: 'Resolved',
};

/** Prefix of a message that is not the first about its case; empty for the first. */
export function prefixOf({ delivery, more_events }: DeliveryJob): string {
  if (delivery.reason === 'summary') return `+${more_events} more: `;
  const prefix = PREFIXES[delivery.reason];
  return prefix ? `${prefix}: ` : '';
}
