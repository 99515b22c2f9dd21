import { eq } from 'drizzle-orm';
import { type CatalogStreamRow, catalogStreams } from '../../../db/schema/index.ts';
import type { Overrides } from '../../pipeline/overrides.ts';
import { fieldName } from '../../pipeline/transfer-plan.ts';
import { badRequest } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { checkOverrides, refuseBreakingOverrides } from './catalog-checks.ts';
import { discoveredStream } from '../../catalog/store.ts';
import { presentItem, readCatalogRows } from './catalog-items.ts';
import type {
  AccountConnectorCatalogItemSchema,
  CatalogItemRequest,
  FieldOverrideRequest,
  UpdateAccountConnectorCatalogRequest,
} from './catalog-schema.ts';
import { emitAccountConnectorEvent } from './events.ts';
import { findAccountConnector } from './query.ts';

/**
 * Stores overrides for fields of a source; all its connections use them from their next run on. Returns the whole
 * catalog, ordered by namespace and name.
 * @throws ApiError 400 `catalog_not_ready`, `unknown_stream`, `ambiguous_stream`, `unknown_field`, and those of
 * checkOverrides and refuseBreakingOverrides.
 */
export async function updateAccountConnectorCatalog(
  ctx: Ctx,
  input: UpdateAccountConnectorCatalogRequest & { account_connector_id: string },
): Promise<AccountConnectorCatalogItemSchema[]> {
  const row = await findAccountConnector(ctx, input.account_connector_id, true);
  requirePermission(ctx, `${row.connector_type}s.update`);
  const before = await readCatalogRows(ctx, row.id);
  if (before.length === 0) {
    throw badRequest('catalog_not_ready', `The streams of "${row.name}" have not been discovered yet`, {
      catalog_status: row.catalog_status,
    });
  }
  const overrides = overridesAfter(before, input);
  const after = before.map((stream) => ({ ...stream, overrides: overrides.get(stream.id) ?? stream.overrides }));
  const changed = after.filter((stream, index) => !Bun.deepEquals(stream.overrides, before[index]!.overrides));
  const known = new Map(before.map(({ id, overrides: had }) => [id, had]));
  const changes = changed.map((stream) => ({ before: known.get(stream.id) ?? {}, after: stream }));
  await refuseBreakingOverrides(ctx, changes);
  for (const stream of changed) {
    await ctx.db.update(catalogStreams).set({ overrides: stream.overrides }).where(eq(catalogStreams.id, stream.id));
  }
  if (changed.length > 0) {
    await emitAccountConnectorEvent(ctx, 'account_connector_updated', { row, changed_fields: ['catalog'] });
  }
  return after.map(presentItem);
}

/** The resulting overrides of each stream in the request, keyed by stream id. */
function overridesAfter(rows: CatalogStreamRow[], input: UpdateAccountConnectorCatalogRequest): Map<string, Overrides> {
  const replaces = input.mode === 'replace';
  const overrides = new Map<string, Overrides>(replaces ? rows.map(({ id }) => [id, {}]) : []);
  for (const [index, item] of input.items.entries()) {
    const stream = namedStream(rows, item, index);
    const place = { schema: discoveredStream(stream), field: `items.${index}.field_overrides` };
    const merged = { ...(overrides.get(stream.id) ?? stream.overrides) };
    for (const [at, request] of item.field_overrides.entries()) {
      const name = fieldName(request.path);
      if (!place.schema.fields.some((field) => Bun.deepEquals(field.path, request.path))) {
        const context = { field: `${place.field}.${at}.path`, stream_name: stream.name };
        throw badRequest('unknown_field', `${stream.name} has no field "${name}"`, context);
      }
      const said = mergeOverride(request.clear ? {} : (merged[name] ?? {}), request);
      if (Object.keys(said).length > 0) merged[name] = said;
      else delete merged[name];
    }
    checkOverrides(merged, place);
    overrides.set(stream.id, merged);
  }
  return overrides;
}

function namedStream(rows: CatalogStreamRow[], item: CatalogItemRequest, index: number): CatalogStreamRow {
  const { stream_id, name, namespace } = item;
  const found = rows.filter(
    (row) =>
      row.removed_at === null &&
      (stream_id === undefined
        ? row.name === name && (namespace == null || row.namespace === namespace)
        : row.id === stream_id),
  );
  const [stream, other] = found;
  const field = `items.${index}.${stream_id === undefined ? 'name' : 'stream_id'}`;
  if (!stream) throw badRequest('unknown_stream', `The source has no stream "${stream_id ?? name}"`, { field });
  if (other) throw badRequest('ambiguous_stream', `"${name}" exists in several namespaces. Set namespace`, { field });
  return stream;
}

function mergeOverride(before: Overrides[string], request: FieldOverrideRequest): Overrides[string] {
  const { path: _path, clear: _clear, ...keys } = request;
  const merged: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(keys)) {
    if (value === null) delete merged[key];
    else if (value !== undefined) merged[key] = value;
  }
  return merged;
}
