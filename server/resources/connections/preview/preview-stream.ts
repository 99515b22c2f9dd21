import type { StreamRow } from '../../../../db/schema/index.ts';
import { loadStream } from '../../../catalog/resolve-stream.ts';
import { sampleRows } from '../../../connector-runtime/account-connector-calls.ts';
import type { Cell } from '../../../connectors/contract/connector.ts';
import type { StreamSettings } from '../../../pipeline/stream-check/settings.ts';
import { fieldName, planTransfer, readRequest, tableName, type TransferPlan } from '../../../pipeline/transfer-plan.ts';
import { createMapper } from '../../../transfer/mapping.ts';
import { actorOf, type Ctx } from '../../../api/procedure.ts';
import { asUpstreamError } from '../../../api/upstream-error.ts';
import { readCatalog } from '../catalog.ts';
import { kindOf } from '../../../pipeline/connection-kind.ts';
import { refuseFindings } from '../streams/check.ts';
import { resolveSides, resolveSource, type SidesSoFar } from '../streams/references.ts';
import { planStreams } from '../streams/selection.ts';
import type { PreviewStreamRequest, StreamPreview } from './schema.ts';

/**
 * The first rows of a stream, as they are in the source and as a run writes them. Masked values leave the service masked
 * only. Stores nothing but the use of the secrets.
 * @throws ApiError 400 for settings that a save refuses, `upstream_auth_failed`, `upstream_timeout`, `upstream_error`.
 */
export async function previewStream(ctx: Ctx, input: PreviewStreamRequest): Promise<StreamPreview> {
  const sides = await sidesOf(ctx, input);
  const settings = await settingsOf(ctx, input, sides);
  const { source, source_connector, destination, destination_connector } = sides;
  const { namespace, name } = settings;
  const row = { ...settings, namespace, name, state: null } as unknown as StreamRow;
  try {
    const { schema, stream } = await loadStream(ctx.deps, { source, stream: row });
    const plan = planTransfer({ source: source_connector, schema, stream });
    // A sample starts at the beginning, whatever a run resumes from.
    const whole = { ...stream, sync_mode: 'full_refresh' as const };
    const request = readRequest({ plan, schema, stream: whole, state: null, window: null });
    const actor = actorOf(ctx.principal);
    const sample = await sampleRows(ctx.deps, source, { request, limit: input.limit, actor });
    const table = tableName({ table_prefix: input.table_prefix ?? '' }, stream);
    const target = {
      schema: input.destination_schema ?? null,
      table,
      columns: plan.columns.map((column) => column.target),
      primary_key: plan.primary_key,
      mode: stream.destination_sync_mode,
    };
    return {
      estimated_rows: sample.estimated_rows,
      columns: plan.columns.map(presentColumn),
      rows: pairs(plan, sample.rows, createMapper(plan, ctx.deps.secrets.maskKeys(source.account_id))),
      rows_skipped: sample.skipped,
      table,
      definition: (destination && destination_connector.defineTable?.(destination.parameters, target)) ?? null,
    };
  } catch (error) {
    throw asUpstreamError(error);
  }
}

const sidesOf = (ctx: Ctx, { source_id, destination_id }: PreviewStreamRequest): Promise<SidesSoFar> =>
  destination_id == null
    ? resolveSource(ctx, source_id)
    : resolveSides(ctx, { source_id, destination_id }, { lock: null });

/** @throws ApiError 400 */
async function settingsOf(ctx: Ctx, { stream, table_prefix }: PreviewStreamRequest, sides: SidesSoFar) {
  const { planned, findings } = planStreams({
    catalog: await readCatalog(ctx, sides.source.id),
    source_connector: sides.source_connector,
    destination_connector: sides.destination_connector,
    reverse_etl: sides.destination !== null && kindOf(sides) === 'reverse_etl',
    table_prefix: table_prefix ?? '',
    requests: [{ ...stream, selected: true }],
    current: new Map(),
    unnamed: 'deselect',
  });
  refuseFindings(findings);
  const { name, namespace, settings } = planned.find((one) => one.settings.selected)!;
  return { ...(settings satisfies StreamSettings), name, namespace };
}

const isMasked = ({ pushed, masking }: TransferPlan['columns'][number]) => pushed !== 'none' || masking !== 'none';

const presentColumn = (column: TransferPlan['columns'][number]): StreamPreview['columns'][number] => ({
  field: fieldName(column.field.path),
  source_type: column.field.source_type ?? column.field.type,
  name: column.target.name,
  type: column.target.type,
  masked: isMasked(column),
});

const MAX_LENGTH = 500;
const cut = (cell: Cell | undefined): Cell => cell?.slice(0, MAX_LENGTH) ?? null;

/** Row by row, since the mapping works in place and drops rows. */
const pairs = (plan: TransferPlan, rows: Cell[][], map: ReturnType<typeof createMapper>): StreamPreview['rows'] =>
  rows.flatMap((cells) => {
    const source = plan.columns.map((column, index) => (isMasked(column) ? null : cut(cells[index])));
    return map({ rows: [cells], bytes: 0 }).rows.map((written) => ({ source, destination: written.map(cut) }));
  });
