import { and, desc, eq, isNull, sql } from 'drizzle-orm';
import { accountConnectors, catalogStreams, connections, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { findConnector } from '../../connectors/registry.ts';
import type { AccountConnectorRow } from '../../engine/account-connectors.ts';
import { notFound } from '../../lib/errors.ts';
import type { Ctx } from '../../procedure.ts';
import { connectorId } from '../connector-id.ts';
import { type ConnectorType, isId } from '../wire.ts';
import type { AccountConnectorSchema } from './schema.ts';
import { presentTunnel } from './tunnel.ts';

// By one side only: where one warehouse takes all, a look at both reads every connection for every connector.
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
    })
    .from(accountConnectors)
    .leftJoin(users, eq(users.id, accountConnectors.created_by));

type AccountConnectorRecord = Awaited<ReturnType<typeof select>>[number];

const ofAccount = (ctx: Ctx) =>
  and(eq(accountConnectors.account_id, ctx.principal.account_id), isNull(accountConnectors.deleted_at));

export interface AccountConnectorFilter {
  connector_type?: ConnectorType;
  connector_name?: string;
}

/** The account's sources and destinations, newest first, in one statement. */
export async function listAccountConnectors(
  ctx: Ctx,
  filter: AccountConnectorFilter,
): Promise<AccountConnectorSchema[]> {
  const { connector_type, connector_name } = filter;
  const records = await select(ctx.db)
    .where(
      and(
        ofAccount(ctx),
        connector_type && eq(accountConnectors.connector_type, connector_type),
        connector_name === undefined ? undefined : eq(accountConnectors.connector_name, connector_name),
      ),
    )
    .orderBy(desc(accountConnectors.created_at), desc(accountConnectors.id));
  return records.map(present);
}

/** @throws ApiError 404, also when `connector_type` is the other one. */
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

/** The caller's row, locked until the transaction ends when `lock` says so. @throws ApiError 404 */
export async function findAccountConnector(ctx: Ctx, id: string, lock: boolean): Promise<AccountConnectorRow> {
  if (!isId(id)) throw notFound('Account connector');
  const query = ctx.db
    .select()
    .from(accountConnectors)
    .where(and(ofAccount(ctx), eq(accountConnectors.id, id)));
  const [row] = await (lock ? query.for('update') : query);
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
  const { row } = record;
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  return {
    ...row,
    connector_id: connectorId({ type: row.connector_type, name: row.connector_name }),
    connector_display_name: connector?.display_name ?? row.connector_name,
    connector_version: connector?.version ?? '0.0.0',
    is_authenticated: row.status !== 'pending_auth' && row.status !== 'needs_reauth',
    ssh_tunnel: presentTunnel(row.ssh_tunnel),
    connections_count: record.connections_count,
    streams_count: record.streams_count,
    created_by: record.created_by,
  };
}
