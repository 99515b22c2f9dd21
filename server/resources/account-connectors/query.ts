import { and, desc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { z } from 'zod';
import {
  type AccountConnectorRow,
  accountConnectors,
  catalogStreams,
  connections,
  customConnectors,
  users,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { findConnector } from '../../connectors/registry.ts';
import { notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { connectorId } from '../../api/connector-id.ts';
import { countRows } from '../../api/total-count.ts';
import { ConnectorType, isId, PageQuery } from '../../api/wire-types.ts';
import type { AccountConnectorSchema } from './schema.ts';
import { presentTunnel } from './tunnel.ts';

// Compares one side only: with a single warehouse, an `or` would read every connection for each connector.
const uses = sql<number>`case when ${accountConnectors.connector_type} = 'source'
  then (select count(*)::int from ${connections} c
    where c.deleted_at is null and c.source_id = ${accountConnectors.id})
  else (select count(*)::int from ${connections} c
    where c.deleted_at is null and c.destination_id = ${accountConnectors.id}) end`;
const streams = sql<number>`(
  select count(*)::int from ${catalogStreams} s
  where s.account_connector_id = ${accountConnectors.id} and s.removed_at is null)`;

const select = (db: Db) =>
  db
    .select({
      row: accountConnectors,
      created_by: { id: users.id, name: users.full_name, email: users.email },
      connections_count: uses,
      streams_count: streams,
      custom: { display_name: customConnectors.display_name, version: customConnectors.version },
    })
    .from(accountConnectors)
    .leftJoin(users, eq(users.id, accountConnectors.created_by))
    .leftJoin(
      customConnectors,
      and(
        eq(customConnectors.account_id, accountConnectors.account_id),
        eq(customConnectors.name, accountConnectors.connector_name),
      ),
    );

type AccountConnectorRecord = Awaited<ReturnType<typeof select>>[number];

const ofAccount = (ctx: Ctx) =>
  and(eq(accountConnectors.account_id, ctx.principal.account_id), isNull(accountConnectors.deleted_at));

export const AccountConnectorQuery = PageQuery.extend({
  connector_type: ConnectorType.optional(),
  connector_name: z.string().optional(),
});
type AccountConnectorQuery = z.infer<typeof AccountConnectorQuery>;

/** The account's sources and destinations, newest first. `X-Total-Count` has the number of matches. */
export async function listAccountConnectors(
  ctx: Ctx,
  { connector_type, connector_name, limit, offset }: AccountConnectorQuery,
): Promise<AccountConnectorSchema[]> {
  const where = and(
    ofAccount(ctx),
    connector_type && eq(accountConnectors.connector_type, connector_type),
    connector_name === undefined ? undefined : eq(accountConnectors.connector_name, connector_name),
  );
  // Limit before counting: otherwise the counts are computed for skipped rows, too.
  const ids = ctx.db
    .select({ id: accountConnectors.id })
    .from(accountConnectors)
    .where(where)
    .orderBy(...NEWEST)
    .offset(offset)
    .$dynamic();
  const [records, total] = await Promise.all([
    select(ctx.db)
      .where(inArray(accountConnectors.id, limit === undefined ? ids : ids.limit(limit)))
      .orderBy(...NEWEST),
    countRows(ctx.db, accountConnectors, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return records.map(present);
}

const NEWEST = [desc(accountConnectors.created_at), desc(accountConnectors.id)];

/** @throws ApiError 404, also when the row has the other `connector_type`. */
export async function getAccountConnector(
  ctx: Ctx,
  input: { account_connector_id: string; connector_type?: ConnectorType },
): Promise<AccountConnectorSchema> {
  const { account_connector_id: id, connector_type } = input;
  const [record] = isId(id)
    ? await select(ctx.db).where(
        and(
          ofAccount(ctx),
          eq(accountConnectors.id, id),
          connector_type && eq(accountConnectors.connector_type, connector_type),
        ),
      )
    : [];
  if (!record) throw notFound('Account connector');
  return present(record);
}

/** The caller's row; `lock` locks it until the transaction ends. @throws ApiError 404 */
export async function findAccountConnector(ctx: Ctx, id: string, lock: boolean): Promise<AccountConnectorRow> {
  if (!isId(id)) throw notFound('Account connector');
  const query = ctx.db
    .select()
    .from(accountConnectors)
    .where(and(ofAccount(ctx), eq(accountConnectors.id, id)));
  const [row] = await (lock ? query.for('no key update') : query);
  if (!row) throw notFound('Account connector');
  return row;
}

/** Ids of the connections that use it, oldest first. */
export async function connectionsUsing(ctx: Ctx, id: string): Promise<string[]> {
  const rows = await ctx.db
    .select({ id: connections.id })
    .from(connections)
    .where(and(isNull(connections.deleted_at), sql`${id} in (${connections.source_id}, ${connections.destination_id})`))
    .orderBy(connections.created_at, connections.id);
  return rows.map((row) => row.id);
}

function present(record: AccountConnectorRecord): AccountConnectorSchema {
  const { row, custom } = record;
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  return {
    ...row,
    connector_id: connectorId({ type: row.connector_type, name: row.connector_name }),
    connector_display_name: custom?.display_name ?? connector?.display_name ?? row.connector_name,
    connector_version: custom ? String(custom.version) : (connector?.version ?? '0.0.0'),
    is_authenticated: row.status !== 'pending_auth' && row.status !== 'needs_reauth',
    ssh_tunnel: presentTunnel(row.ssh_tunnel),
    connections_count: record.connections_count,
    streams_count: record.streams_count,
    created_by: record.created_by,
  };
}
