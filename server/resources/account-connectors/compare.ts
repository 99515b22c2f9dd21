import { z } from 'zod';
import { findConnector } from '../../connectors/registry.ts';
import { openParameters } from '../../connector-runtime/connector-secrets.ts';
import { badRequest } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { checkParameters } from './parameters.ts';
import { findAccountConnector } from './query.ts';

export const ComparedParameters = z
  .strictObject({ parameters: z.record(z.string(), z.unknown()) })
  .meta({ id: 'ComparedParameters', examples: [{ parameters: { rows: 20000 } }] });

/**
 * Names of the parameters, secrets included, that an update with these values would change. Clients that keep pipelines
 * in files cannot read secrets and must not store them. Needs the permission to update.
 * @throws ApiError 404, 403; 400 for values that the update would refuse.
 */
export async function differingParameters(
  ctx: Ctx,
  input: z.infer<typeof ComparedParameters> & { account_connector_id: string },
): Promise<string[]> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  if (!connector) throw badRequest('unknown_connector', `Connector "${row.connector_name}" is no longer available`);
  const before = openParameters(ctx.deps, row);
  const { all } = await checkParameters(ctx, connector, input.parameters, before);
  const names = [...new Set([...Object.keys(before), ...Object.keys(all)])].toSorted();
  return names.filter((name) => !Bun.deepEquals(before[name] ?? null, all[name] ?? null));
}
