import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { accountConnectors, connections, streamRuns } from '../../../db/schema/index.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { asUpstreamError } from '../../api/upstream-error.ts';
import { sampleTable } from '../../connector-runtime/account-connector-calls.ts';
import { findConnector } from '../../connectors/registry.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { findRun, type RunKey } from '../access/run.ts';

export const PreviewTableRequest = z
  .strictObject({
    rows: z.enum(['loaded', 'rejected']).default('loaded').meta({
      description: '`rejected`: those that this stream run kept beside the table, with the reason.',
    }),
    limit: z.int().min(1).max(100).default(10).meta({ description: 'Maximum number of rows.' }),
  })
  .meta({ id: 'PreviewTableRequest', examples: [{ rows: 'loaded', limit: 10 }] });

export const TablePreview = z
  .object({
    table: z.string(),
    columns: z.array(z.string()),
    rows: z
      .array(z.array(z.string().nullable()))
      .meta({ description: 'By column, as stored; the first 500 characters of a value.' }),
  })
  .meta({ id: 'TablePreview' });
type TablePreview = z.infer<typeof TablePreview>;

type Input = z.output<typeof PreviewTableRequest> & RunKey & { stream_run_id: string };
const MAX_LENGTH = 500;

/**
 * The first rows of the table that a stream run loaded, whatever has written them. Stores nothing but the use of the
 * secrets. The table is that of the run: a setting that names another one shows nothing before its first run.
 * @throws ApiError 404; 400 `table_preview_unsupported`, `not_loaded`, and those of the destination.
 */
export async function previewTable(ctx: Ctx, input: Input): Promise<TablePreview> {
  const { stream_run, destination, schema } = await loadedTable(ctx, input);
  const connector = findConnector('destination', destination.connector_name);
  if (!connector?.sampleTable) {
    throw badRequest('table_preview_unsupported', `Rows in ${destination.name} cannot be read`);
  }
  const table = stream_run.destination_table;
  if (table === null || stream_run.rows_read === 0) {
    throw badRequest('not_loaded', `This run has loaded no rows of ${stream_run.stream_name}`);
  }
  try {
    const rejected_by = input.rows === 'rejected' ? stream_run.id : null;
    const sample = { schema, table, limit: input.limit, rejected_by };
    const found = await sampleTable(ctx.deps, destination, { sample, actor: actorOf(ctx.principal) });
    const rows = found.rows.map((cells) => cells.map((cell) => cell?.slice(0, MAX_LENGTH) ?? null));
    return { table, columns: found.columns, rows };
  } catch (error) {
    throw asUpstreamError(error);
  }
}

async function loadedTable(ctx: Ctx, input: Input) {
  const run = await findRun(ctx, input);
  const [found] = await ctx.db
    .select({ stream_run: streamRuns, destination: accountConnectors, schema: connections.destination_schema })
    .from(streamRuns)
    .innerJoin(connections, eq(connections.id, streamRuns.connection_id))
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.destination_id))
    .where(and(eq(streamRuns.id, input.stream_run_id), eq(streamRuns.connection_run_id, run.id)));
  if (!found) throw notFound('Stream run');
  return found;
}
