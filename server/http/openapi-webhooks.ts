import { z } from 'zod';
import type { ZodOpenApiObject } from 'zod-openapi';
import { DELIVERY_REASONS } from '../../db/schema/index.ts';
import { instant, whole } from '../api/wire-types.ts';
import { CaseStatus } from '../resources/automation/cases-schema.ts';
import { EventType, Severity } from '../resources/automation/events-schema.ts';

const WebhookDelivery = z
  .object({
    id: z.string().meta({ format: 'uuid', description: 'The same for every attempt: receivers deduplicate by it.' }),
    reason: z.enum(DELIVERY_REASONS),
    event: EventType,
    event_id: z.string().meta({ format: 'uuid' }),
    occurred_at: instant(),
    summary: z.string(),
    trigger: z.object({ id: z.string(), name: z.string(), severity: Severity }),
    case: z
      .object({
        id: z.string(),
        number: whole(),
        title: z.string(),
        status: CaseStatus,
        severity: Severity,
        group: z.record(z.string(), z.unknown()),
        event_count: whole(),
        url: z.string().nullable(),
      })
      .nullable()
      .meta({ description: 'Null for a trigger without cases.' }),
    payload: z.record(z.string(), z.unknown()).meta({ description: 'The variables of the event, as rules use them.' }),
  })
  .meta({ id: 'WebhookDelivery' });

const signature = (description: string) => z.string().optional().meta({ description });
const Headers = z.object({
  'webhook-id': z.string().meta({ description: 'The id of the delivery.' }),
  'webhook-timestamp': z.string().meta({ description: 'Seconds since 1970, of this attempt.' }),
  'webhook-signature': signature('Of a webhook with a secret: Standard Webhooks, `v1,` and an HMAC-SHA256 in base64.'),
});

/** What the service sends: the action `call_webhook` of triggers, unless it has a body template of its own. */
export const WEBHOOKS: ZodOpenApiObject['webhooks'] = {
  trigger_fired: {
    post: {
      operationId: 'trigger_fired',
      summary: 'A trigger with the action call_webhook fired',
      description:
        'Sent at least once, with growing pauses until a 2xx response. Redirects are not followed. A trigger may replace ' +
        'the body by a template.',
      tags: ['Automation'],
      security: [],
      requestParams: { header: Headers },
      requestBody: { required: true, content: { 'application/json': { schema: WebhookDelivery } } },
      responses: { '2XX': { description: 'Received' } },
    },
  },
};
