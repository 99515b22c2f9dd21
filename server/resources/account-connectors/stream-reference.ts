import { and, eq, isNull, sql } from 'drizzle-orm';
import { connectionStreams, connections } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';

/**
 * Which of the given connection and stream is not valid: it must belong to the account and use the account connector,
 * and the stream must belong to the connection. Null when both are valid.
 */
export async function unknownReference(
  ctx: Ctx,
  use: { account_connector_id: string; connection_id?: string | null; stream_id?: string | null },
): Promise<'connection' | 'stream' | null> {
  const { account_connector_id, connection_id, stream_id } = use;
  const usable = and(
    eq(connections.account_id, ctx.principal.account_id),
    isNull(connections.deleted_at),
    sql`${account_connector_id} in (${connections.source_id}, ${connections.destination_id})`,
  );
  if (connection_id != null) {
    const query = ctx.db.select({ id: connections.id }).from(connections);
    const found = isId(connection_id) ? await query.where(and(usable, eq(connections.id, connection_id))) : [];
    if (found.length === 0) return 'connection';
  }
  if (stream_id == null) return null;
  const found = await ctx.db
    .select({ id: connectionStreams.id })
    .from(connectionStreams)
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .where(
      and(
        usable,
        eq(connectionStreams.id, stream_id),
        connection_id == null ? undefined : eq(connections.id, connection_id),
      ),
    );
  return found.length === 0 ? 'stream' : null;
}
