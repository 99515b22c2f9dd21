import { accountConnectors } from '../../../db/schema/index.ts';
import { inArray } from 'drizzle-orm';
import { emit } from '../../events/emit.ts';
import type { EventKind } from '../../events/kinds.ts';
import { actorOf, type Ctx } from '../../procedure.ts';
import type { ConnectionRow } from '../owned-connection.ts';

const SENTENCES: Partial<Record<EventKind, string>> = {
  connection_created: 'was created',
  connection_updated: 'was changed',
  connection_paused: 'was paused',
  connection_resumed: 'was resumed',
  connection_deleted: 'was deleted',
};

type End = Pick<typeof accountConnectors.$inferSelect, 'id' | 'name' | 'connector_name'>;

interface ConnectionChange {
  connection: ConnectionRow;
  changed_fields: string[];
  before?: object;
  after?: object;
  /** Its source and destination, where they have been read already. */
  ends?: End[];
}

/** Reports a change of a connection by the caller, with the variables that rules may use. */
export async function emitConnectionEvent(ctx: Ctx, event: EventKind, change: ConnectionChange): Promise<void> {
  const { connection, ends: known, ...facts } = change;
  const ends = known ?? (await endsOf(ctx, connection));
  const source = ends.find((end) => end.id === connection.source_id);
  const destination = ends.find((end) => end.id === connection.destination_id);
  await emit(ctx.db, {
    account_id: connection.account_id,
    event,
    actor: actorOf(ctx.principal),
    resource: { type: 'connection', id: connection.id, name: connection.name },
    summary: `Connection "${connection.name}" ${SENTENCES[event] ?? 'was changed'}`,
    connection_id: connection.id,
    payload: {
      connection_id: connection.id,
      connection_name: connection.name,
      kind: connection.kind,
      status: connection.status,
      status_reason: connection.status_reason,
      source_id: connection.source_id,
      source_name: source?.name ?? null,
      source_connector_name: source?.connector_name ?? null,
      destination_id: connection.destination_id,
      destination_name: destination?.name ?? null,
      destination_connector_name: destination?.connector_name ?? null,
      tags: connection.tags,
      ...facts,
    },
  });
}

const endsOf = (ctx: Ctx, connection: ConnectionRow): Promise<End[]> =>
  ctx.db
    .select({
      id: accountConnectors.id,
      name: accountConnectors.name,
      connector_name: accountConnectors.connector_name,
    })
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [connection.source_id, connection.destination_id]));
