import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import { emit } from '../../events/emit.ts';
import type { EventKind } from '../../events/kinds.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { transitionEvent } from './test-outcome.ts';

const SENTENCES: Partial<Record<EventKind, string>> = {
  account_connector_created: 'was created',
  account_connector_updated: 'was changed',
  account_connector_deleted: 'was deleted',
  account_connector_authenticated: 'was tested and works',
  account_connector_broken: 'does not work',
  account_connector_reauth_required: 'needs new credentials',
};

/** Reports what the caller did with a source or destination, with the variables that rules may use. */
export async function emitAccountConnectorEvent(
  ctx: Ctx,
  event: EventKind,
  change: { row: AccountConnectorRow; changed_fields?: string[] },
): Promise<void> {
  const { row, changed_fields = [] } = change;
  const kind = row.connector_type === 'source' ? 'Source' : 'Destination';
  await emit(ctx.db, {
    account_id: row.account_id,
    event,
    actor: actorOf(ctx.principal),
    resource: { type: 'account_connector', id: row.id, name: row.name },
    summary: `${kind} "${row.name}" ${SENTENCES[event] ?? 'was changed'}`,
    account_connector_id: row.id,
    payload: {
      account_connector_id: row.id,
      account_connector_name: row.name,
      connector_type: row.connector_type,
      connector_name: row.connector_name,
      status: row.status,
      status_reason: row.status_reason,
      changed_fields,
    },
  });
}

/** Reports the change of state beside the change that brought it about. */
export async function emitTransition(
  ctx: Ctx,
  before: AccountConnectorRow['status'] | null,
  row: AccountConnectorRow,
): Promise<void> {
  const event = transitionEvent(before, row.status);
  if (event) await emitAccountConnectorEvent(ctx, event, { row });
}
