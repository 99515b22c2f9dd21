import { eq } from 'drizzle-orm';
import { customConnectors } from '../../../db/schema/index.ts';
import { refuseDuplicateName } from '../../api/duplicate-name.ts';
import type { Ctx } from '../../api/procedure.ts';
import { badRequest } from '../../platform/errors.ts';
import { isFull } from '../access/row-limit.ts';
import { getOwnConnector } from './query.ts';
import { readConnector } from './read-documents.ts';
import type { CreateCustomConnectorRequest, CustomConnectorSchema } from './schema.ts';

const MAX_CONNECTORS = 100;

/**
 * Adds a connector to the catalog of the account.
 * @throws ApiError 400 `duplicate_name`, `too_many_connectors` and those of `readConnector`
 */
export async function createCustomConnector(
  ctx: Ctx,
  input: CreateCustomConnectorRequest,
): Promise<CustomConnectorSchema> {
  const { outline, ...read } = (await readConnector(ctx, input, null))!;
  const { account_id, user_id } = ctx.principal;
  const name = `custom.${input.name}`;
  await ctx.db.transaction(async (db) => {
    const where = eq(customConnectors.account_id, account_id);
    if (await isFull(db, account_id, { table: customConnectors, where, limit: MAX_CONNECTORS })) {
      throw badRequest('too_many_connectors', `An account has at most ${MAX_CONNECTORS} connectors of its own`);
    }
    const row = {
      account_id,
      name,
      display_name: input.display_name ?? titleOf(input.name),
      description: input.description ?? 'Custom connector',
      icon: input.icon ?? null,
      documentation_url: input.documentation_url ?? outline.documentation_url,
      ...read,
      outline: { ...outline },
      created_by: user_id,
    };
    await refuseDuplicateName('connector', db.insert(customConnectors).values(row));
  });
  return getOwnConnector(ctx, { connector_name: name });
}

const titleOf = (name: string) => name.slice(0, 1).toUpperCase() + name.slice(1).replaceAll('_', ' ');
