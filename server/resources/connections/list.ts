import { and, arrayContains, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { z } from 'zod';
import { connections } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { isId, PageQuery } from '../../api/wire-types.ts';
import { inFolder } from './move-folder.ts';
import { presentConnection } from './present.ts';
import { ofAccount, selectConnections } from './query.ts';
import { type ConnectionSchema, ConnectionStatus } from './schema.ts';

export const ConnectionQuery = PageQuery.extend({
  status: z.array(ConnectionStatus).max(10).optional().meta({ description: 'One or more; repeat the parameter.' }),
  source_id: z.string().optional().meta({ description: 'Only connections from this source.' }),
  destination_id: z.string().optional().meta({ description: 'Only connections to this destination.' }),
  tag: z.string().optional().meta({ description: 'Only connections with this tag.' }),
  folder: z.string().optional().meta({ description: 'Only connections in this folder, or below it.' }),
});
export type ConnectionQuery = z.infer<typeof ConnectionQuery>;

/** The account's connections, newest first. `X-Total-Count` has the number of matches. */
export async function listConnections(ctx: Ctx, query: ConnectionQuery): Promise<ConnectionSchema[]> {
  const where = filterOf(ctx, query);
  const [records, total] = await Promise.all([
    selectConnections(ctx.db, where, query),
    countRows(ctx.db, connections, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  const now = ctx.deps.now();
  return records.map((record) => presentConnection(record, now));
}

function filterOf(ctx: Ctx, { status, source_id, destination_id, tag, folder }: ConnectionQuery): SQL | undefined {
  return and(
    ofAccount(ctx.principal.account_id),
    status && inArray(connections.status, status),
    source_id === undefined ? undefined : isNamed(connections.source_id, source_id),
    destination_id === undefined ? undefined : isNamed(connections.destination_id, destination_id),
    tag === undefined ? undefined : arrayContains(connections.tags, [tag]),
    folder === undefined ? undefined : inFolder(folder),
  );
}

/** Ids are opaque to clients: text that is not a UUID matches nothing. */
const isNamed = (column: PgColumn, id: string) => (isId(id) ? eq(column, id) : sql`false`);
