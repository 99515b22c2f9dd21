import { z } from 'zod';
import { actorOf, type Ctx, requirePermission } from '../../../api/procedure.ts';
import { asUpstreamError } from '../../../api/upstream-error.ts';
import { count, text } from '../../../api/wire-types.ts';
import { sampleDataset } from '../../../connector-runtime/account-connector-calls.ts';
import { LOGICAL_TYPES } from '../../../connectors/contract/connector.ts';
import { findConnector } from '../../../connectors/registry.ts';
import { fieldName } from '../../../pipeline/transfer-plan.ts';
import { badRequest } from '../../../platform/errors.ts';
import { findAccountConnector } from '../query.ts';

export const DatasetTrialRequest = z
  .strictObject({
    sql: text(1, 100_000).meta({ description: 'One SELECT.' }),
    limit: z.int().min(1).max(100).default(10).meta({ description: 'Maximum number of rows.' }),
  })
  .meta({ id: 'DatasetTrialRequest', examples: [{ sql: 'select id, email from users where is_paying' }] });

export const DatasetTrial = z
  .object({
    columns: z.array(z.object({ name: z.string(), type: z.enum(LOGICAL_TYPES), source_type: z.string().nullable() })),
    rows: z
      .array(z.array(z.string().nullable()))
      .meta({ description: 'By column; the first 500 characters of a value.' }),
    rows_skipped: count().meta({ description: 'Rows over 1 MB, which are left out.' }),
  })
  .meta({ id: 'DatasetTrial' });
type DatasetTrial = z.infer<typeof DatasetTrial>;

const MAX_LENGTH = 500;

/**
 * The columns and first rows of a query before it is saved as a dataset. Stores nothing but the use of the secrets.
 * @throws ApiError 400 `datasets_unsupported`, `upstream_auth_failed`, `upstream_timeout`, `upstream_error`.
 */
export async function tryDataset(
  ctx: Ctx,
  { account_connector_id, sql, limit }: z.output<typeof DatasetTrialRequest> & { account_connector_id: string },
): Promise<DatasetTrial> {
  const row = await findAccountConnector(ctx, account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  const connector = findConnector('source', row.connector_name);
  if (row.connector_type !== 'source' || !connector?.capabilities?.datasets) {
    throw badRequest('datasets_unsupported', `${row.name} does not support datasets`, { field: 'sql' });
  }
  try {
    const request = { dataset: { name: 'trial', sql }, limit, actor: actorOf(ctx.principal) };
    const { fields, sample } = await sampleDataset(ctx.deps, row, request);
    return {
      columns: fields.map(({ path, type, source_type }) => ({ name: fieldName(path), type, source_type })),
      rows: sample.rows.map((cells) => cells.map((cell) => cell?.slice(0, MAX_LENGTH) ?? null)),
      rows_skipped: sample.skipped,
    };
  } catch (error) {
    throw asUpstreamError(error);
  }
}
