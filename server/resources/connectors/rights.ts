import { z } from 'zod';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { secretNames } from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import type { Ctx } from '../../api/procedure.ts';
import { ConnectorType, text } from '../../api/wire-types.ts';
import { getConnector } from './service.ts';

export const ConnectorRightsRequest = z
  .strictObject({
    connector_type: ConnectorType,
    connector_name: text(1, 100),
    parameters: z
      .record(z.string(), z.unknown())
      .default({})
      .meta({ description: 'Those that are known already. Secrets are not needed.' }),
  })
  .meta({
    id: 'ConnectorRightsRequest',
    examples: [
      { connector_type: 'source', connector_name: 'postgres', parameters: { username: 'reader', database: 'shop' } },
    ],
  });
type ConnectorRightsRequest = z.output<typeof ConnectorRightsRequest>;

export const ConnectorRights = z
  .object({
    statements: z
      .string()
      .nullable()
      .meta({ description: 'For an owner of the system to run. Null: nothing is to be granted.' }),
  })
  .meta({ id: 'ConnectorRights' });
type ConnectorRights = z.infer<typeof ConnectorRights>;

/** What the user of these settings needs in the other system. @throws ApiError 404 */
export async function connectorRights(ctx: Ctx, input: ConnectorRightsRequest): Promise<ConnectorRights> {
  await getConnector(ctx, input);
  const connector = findConnector(input.connector_type as 'source', input.connector_name)!;
  return { statements: connector.rights?.(usable(connector, input.parameters)) ?? null };
}

/** The valid parameters that are not secret: a form may be half filled in. */
function usable({ config }: AnyConnector, parameters: Record<string, unknown>): Record<string, unknown> {
  const secret = new Set(secretNames(config));
  const entries = Object.entries(config.shape as Record<string, z.ZodType>).flatMap(([name, type]) => {
    if (secret.has(name) || !Object.hasOwn(parameters, name)) return [];
    const { success, data } = type.safeParse(parameters[name]);
    return success && data !== undefined ? [[name, data] as const] : [];
  });
  return Object.fromEntries(entries);
}
