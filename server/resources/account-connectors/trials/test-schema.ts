import { z } from 'zod';
import { actorOf, type Ctx } from '../../../api/procedure.ts';
import { text } from '../../../api/wire-types.ts';
import { testAccountConnector } from '../../../connector-runtime/account-connector-calls.ts';
import { badRequest } from '../../../platform/errors.ts';
import { refuseUnready } from '../login.ts';
import { findAccountConnector } from '../query.ts';
import type { AccountConnectorTest } from '../schema.ts';

export const SchemaTestRequest = z
  .strictObject({
    destination_schema: text(1, 63).meta({ description: 'As in a connection. It need not exist.' }),
  })
  .meta({ id: 'SchemaTestRequest', examples: [{ destination_schema: 'shop' }] });

/**
 * Tests a destination with the schema of a connection. Stores no result, so that the schema of one connection never
 * marks a destination as broken that others use.
 * @throws ApiError 400 `not_a_destination`, `login_not_supported`, `missing_parameter`; 404
 */
export async function testSchema(
  ctx: Ctx,
  input: z.output<typeof SchemaTestRequest> & { account_connector_id: string },
): Promise<z.infer<typeof AccountConnectorTest>> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  if (row.connector_type !== 'destination') {
    throw badRequest('not_a_destination', `${row.name} is a source`, { field: 'account_connector_id' });
  }
  await refuseUnready(ctx, row);
  const asked = { actor: actorOf(ctx.principal), schema: input.destination_schema };
  const { result } = await testAccountConnector(ctx.deps, row, asked);
  const status = result.checks.some((check) => check.status === 'failed') ? 'failed' : 'passed';
  return { status, checks: result.checks };
}
