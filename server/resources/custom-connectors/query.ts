import { and, eq, isNull, sql } from 'drizzle-orm';
import { accountConnectors, type CustomConnectorRow } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { ConnectorOutline } from '../../connectors/contract/connector.ts';
import { findCustomConnector, listCustomConnectors } from '../access/custom-connectors.ts';
import type { CustomConnectorSchema } from './schema.ts';

/** The connectors that the account has added, by name. */
export async function listOwnConnectors(ctx: Ctx): Promise<CustomConnectorSchema[]> {
  const [rows, counts] = [await listCustomConnectors(ctx), await sourceCounts(ctx)];
  return rows.map((row) => present(row, counts));
}

/** @throws ApiError 404 */
export async function getOwnConnector(
  ctx: Ctx,
  { connector_name }: { connector_name: string },
): Promise<CustomConnectorSchema> {
  const row = await findCustomConnector(ctx, connector_name);
  return present(row, await sourceCounts(ctx));
}

async function sourceCounts({ db, principal }: Ctx): Promise<Map<string, number>> {
  const counted = await db
    .select({ name: accountConnectors.connector_name, count: sql<number>`count(*)::int` })
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.account_id, principal.account_id),
        eq(accountConnectors.connector_type, 'source'),
        isNull(accountConnectors.deleted_at),
      ),
    )
    .groupBy(accountConnectors.connector_name);
  return new Map(counted.map(({ name, count }) => [name, count]));
}

function present(row: CustomConnectorRow, counts: Map<string, number>): CustomConnectorSchema {
  const outline = row.outline as unknown as ConnectorOutline;
  return {
    id: row.id,
    name: row.name,
    display_name: row.display_name,
    description: row.description,
    icon: row.icon,
    documentation_url: row.documentation_url,
    manifest_url: row.manifest_url,
    components_url: row.components_url,
    version: row.version,
    digest: row.digest,
    streams: outline.streams.map(({ name }) => name),
    unsupported: outline.unsupported,
    sources_count: counts.get(row.name) ?? 0,
    created_at: row.created_at,
    updated_at: row.updated_at,
    revision: row.revision,
  };
}
