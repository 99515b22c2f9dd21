import { eq } from 'drizzle-orm';
import { z } from 'zod';
import { type AccountConnectorRow, type WebhookInboxRow, webhookInboxes } from '../../../../db/schema/index.ts';
import type { Db } from '../../../../db/types.ts';
import { type Ctx, requirePermission } from '../../../api/procedure.ts';
import { count, instant } from '../../../api/wire-types.ts';
import { addressOf } from '../../../connector-runtime/inbox/address.ts';
import { findConnector } from '../../../connectors/registry.ts';
import { badRequest } from '../../../platform/errors.ts';
import { requireRecentSignIn } from '../../access/step-up.ts';
import { findAccountConnector } from '../query.ts';

const MAX_OVERLAP_HOURS = 7 * 24;

export const WebhookInbox = z
  .object({
    address: z.string().meta({ description: 'Where senders send their events with POST.' }),
    previous_address_until: instant().nullable().meta({ description: 'Until when the address before this one works.' }),
    stored_events: count().meta({
      description: 'Events that are kept now: not loaded yet, or within their retention.',
    }),
    stored_bytes: count(),
    received_events: count().meta({ description: 'All that were acknowledged, without repetitions.' }),
    repeated_events: count().meta({ description: 'Events whose id was stored already.' }),
    event_types: z.array(z.string()),
    last_received_at: instant().nullable(),
  })
  .meta({ id: 'WebhookInbox' });
export type WebhookInbox = z.infer<typeof WebhookInbox>;

export const RotateWebhookAddressRequest = z
  .object({
    overlap_hours: z.int().min(0).max(MAX_OVERLAP_HOURS).default(0).meta({
      description: 'How long the present address works beside the new one. 0: it stops at once.',
    }),
  })
  .meta({ id: 'RotateWebhookAddressRequest', examples: [{ overlap_hours: 24 }] });

/** In the transaction that stores a source. Other connectors have no inbox. */
export async function openInbox(db: Db, { id, account_id, connector_type, connector_name }: AccountConnectorRow) {
  if (connector_type !== 'source' || !findConnector('source', connector_name)?.receiver) return;
  await db.insert(webhookInboxes).values({ account_connector_id: id, account_id });
}

/** @throws ApiError 404; 403; 400 `not_a_webhook_source` */
export async function getWebhookInbox(ctx: Ctx, input: { account_connector_id: string }): Promise<WebhookInbox> {
  return present(ctx, await findInbox(ctx, input, false));
}

/** @throws as above */
export async function rotateWebhookAddress(
  ctx: Ctx,
  input: z.infer<typeof RotateWebhookAddressRequest> & { account_connector_id: string },
): Promise<WebhookInbox> {
  requireRecentSignIn(ctx);
  const inbox = await findInbox(ctx, input, true);
  const until = new Date(ctx.deps.now().getTime() + input.overlap_hours * 3_600_000);
  const [rotated] = await ctx.db
    .update(webhookInboxes)
    .set({
      address_version: inbox.address_version + 1,
      previous_address_until: input.overlap_hours === 0 ? null : until.toISOString(),
    })
    .where(eq(webhookInboxes.account_connector_id, inbox.account_connector_id))
    .returning();
  return present(ctx, rotated!);
}

async function findInbox(
  ctx: Ctx,
  { account_connector_id }: { account_connector_id: string },
  lock: boolean,
): Promise<WebhookInboxRow> {
  const row = await findAccountConnector(ctx, account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  const finding = ctx.db.select().from(webhookInboxes).where(eq(webhookInboxes.account_connector_id, row.id));
  const [inbox] = await (lock ? finding.for('no key update') : finding);
  if (inbox) return inbox;
  throw badRequest('not_a_webhook_source', `${row.name} receives no events. Only sources of the connector webhook do`);
}

const present = ({ deps }: Ctx, inbox: WebhookInboxRow): WebhookInbox => ({
  address: addressOf(deps, inbox),
  previous_address_until:
    inbox.previous_address_until !== null && Date.parse(inbox.previous_address_until) > deps.now().getTime()
      ? inbox.previous_address_until
      : null,
  stored_events: inbox.stored_events,
  stored_bytes: inbox.stored_bytes,
  received_events: inbox.received_events,
  repeated_events: inbox.repeated_events,
  event_types: inbox.event_types,
  last_received_at: inbox.last_received_at,
});
