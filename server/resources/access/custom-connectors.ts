import { and, asc, eq } from 'drizzle-orm';
import { type CustomConnectorRow, customConnectors } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isCustomConnector } from '../../connectors/registry.ts';
import { badRequest, notFound } from '../../platform/errors.ts';

/** The files that a custom connector consists of. */
export interface ConnectorDocuments {
  manifest: string;
  components: string | null;
  files: Record<string, string> | null;
}

/** Parameters that are the same for all sources of a custom connector. */
export const DOCUMENTS: readonly string[] = ['manifest', 'components', 'files'] satisfies (keyof ConnectorDocuments)[];

/** The connectors that the caller's account has added, by name. */
export const listCustomConnectors = ({ db, principal }: Pick<Ctx, 'db' | 'principal'>): Promise<CustomConnectorRow[]> =>
  db
    .select()
    .from(customConnectors)
    .where(eq(customConnectors.account_id, principal.account_id))
    .orderBy(asc(customConnectors.name));

/** `lock` locks it until the transaction ends. @throws ApiError 404 */
export async function findCustomConnector(
  { db, principal }: Pick<Ctx, 'db' | 'principal'>,
  name: string,
  lock: 'share' | 'update' | null = null,
): Promise<CustomConnectorRow> {
  const query = db
    .select()
    .from(customConnectors)
    .where(and(eq(customConnectors.account_id, principal.account_id), eq(customConnectors.name, name)));
  const [row] = isCustomConnector(name) ? await (lock ? query.for(lock) : query) : [];
  if (!row) throw notFound('Connector');
  return row;
}

/** The documents as parameters of a source. */
export const documentParameters = ({ manifest, components, files }: ConnectorDocuments): Record<string, unknown> => ({
  manifest,
  ...(components !== null && { components }),
  ...(files !== null && { files }),
});

/**
 * The parameters that a custom connector determines for its sources; none for any other connector.
 * @throws ApiError 400 `unknown_connector`, `defined_by_connector`
 */
export async function parametersOfConnector(
  ctx: Pick<Ctx, 'db' | 'principal'>,
  { connector_name, parameters }: { connector_name: string; parameters: Record<string, unknown> },
): Promise<Record<string, unknown>> {
  if (!isCustomConnector(connector_name)) return {};
  const row = await findCustomConnector(ctx, connector_name).catch(() => {
    throw badRequest('unknown_connector', `Unknown connector "${connector_name}"`, { field: 'connector_name' });
  });
  const own = documentParameters(row);
  refuseOtherDocuments(connector_name, parameters, own);
  return own;
}

/** What was read can be written, but nothing else. @throws ApiError 400 `defined_by_connector` */
export function refuseOtherDocuments(
  connector_name: string,
  given: Record<string, unknown>,
  stored: Record<string, unknown>,
): void {
  if (!isCustomConnector(connector_name)) return;
  const other = DOCUMENTS.find((name) => name in given && !Bun.deepEquals(given[name] ?? null, stored[name] ?? null));
  if (other === undefined) return;
  throw badRequest('defined_by_connector', `Update the connector ${connector_name} to change its ${other}`, {
    field: `parameters.${other}`,
  });
}

/**
 * In the transaction that stores a source: its custom connector stays as it was when the source was tested.
 * @throws ApiError 400 `connector_changed`
 */
export async function keepCustomConnector(
  ctx: Pick<Ctx, 'db' | 'principal'>,
  { connector_name, parameters }: { connector_name: string; parameters: Record<string, unknown> },
): Promise<void> {
  if (!isCustomConnector(connector_name)) return;
  const row = await findCustomConnector(ctx, connector_name, 'share').catch(() => null);
  const isSame =
    row && Object.entries(documentParameters(row)).every(([name, value]) => Bun.deepEquals(parameters[name], value));
  if (!isSame) throw badRequest('connector_changed', `${connector_name} was changed in the meantime. Try again`);
}
