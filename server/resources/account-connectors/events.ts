import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import { emitConnectorEvent } from '../../events/account-connector-events.ts';
import type { EventKind } from '../../events/kinds.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { transitionEvent } from '../../connector-runtime/test-outcome.ts';

const SENTENCES: Partial<Record<EventKind, string>> = {
  account_connector_created: 'was created',
  account_connector_updated: 'was edited',
  account_connector_deleted: 'was deleted',
  account_connector_authenticated: 'passed its test',
  account_connector_broken: 'failed its test',
  account_connector_reauth_required: 'needs new credentials',
};

/** Emits an event about a change of a source or destination by the caller. */
export async function emitAccountConnectorEvent(
  ctx: Ctx,
  event: EventKind,
  change: { row: AccountConnectorRow; changed_fields?: string[] },
): Promise<void> {
  await emitConnectorEvent(ctx.db, {
    row: change.row,
    event,
    sentence: SENTENCES[event] ?? 'was edited',
    actor: actorOf(ctx.principal),
    extra: { changed_fields: change.changed_fields ?? [] },
  });
}

/** Emits an event when the status changed. */
export async function emitTransition(
  ctx: Ctx,
  before: AccountConnectorRow['status'] | null,
  row: AccountConnectorRow,
): Promise<void> {
  const event = transitionEvent(before, row.status);
  if (event) await emitAccountConnectorEvent(ctx, event, { row });
}
