import { and, eq, inArray, isNull } from 'drizzle-orm';
import {
  accountConnectors,
  type CatalogStreamRow,
  connections,
  connectionStreams,
  type StreamRow,
} from '../../../db/schema/index.ts';
import type { AnyDestination, StreamSchema } from '../../connectors/contract/connector.ts';
import { findConnector } from '../../connectors/registry.ts';
import { checkEffects } from '../../pipeline/stream-check/check.ts';
import { settingsOf } from '../../pipeline/stream-check/settings.ts';
import { applyOverrides, incompatibility, type Overrides, withCatalogChoices } from '../../pipeline/overrides.ts';
import { cursorPath, fieldName, keyPaths } from '../../pipeline/transfer-plan.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { discoveredStream } from '../../catalog/store.ts';

/** A stream and the request field that refers to it, for error messages. */
export interface CatalogStreamField {
  schema: StreamSchema;
  /** `items.0.field_overrides`. */
  field: string;
}

/**
 * Checks the resulting overrides of one stream.
 * @throws ApiError 400 `type_incompatible`, `source_defined_cursor`, `ambiguous_cursor`,
 * `duplicate_destination_column`, `field_in_use`, each with `field` and `stream_name`.
 */
export function checkOverrides(overrides: Overrides, { schema, field }: CatalogStreamField): void {
  const refuse = (code: string, message: string) =>
    badRequest(code, `${schema.name}: ${message}`, { field, stream_name: schema.name });
  for (const one of schema.fields) {
    const name = fieldName(one.path);
    const override = overrides[name];
    if (!override) continue;
    const reason = incompatibility(one, override);
    if (reason) throw refuse('type_incompatible', `"${name}": ${reason}`);
    const decided = schema.source_defined_cursor && fieldName(schema.default_cursor_field ?? []) !== name;
    if (override.is_cursor && decided) throw refuse('source_defined_cursor', 'the source defines the cursor');
  }
  const present = schema.fields.map(({ path }) => fieldName(path));
  const cursors = present.filter((name) => overrides[name]?.is_cursor === true);
  if (cursors.length > 1) throw refuse('ambiguous_cursor', `only one of ${cursors.join(', ')} can be the cursor`);
  const columns = present
    .filter((name) => overrides[name]?.excluded !== true)
    .map((name) => overrides[name]?.destination_name ?? name);
  const twice = columns.find((name, index) => columns.indexOf(name) !== index);
  if (twice !== undefined) throw refuse('duplicate_destination_column', `two fields would be named "${twice}"`);
  const { source_defined_primary_key: key } = applyOverrides(schema, overrides);
  const lost = key?.map(fieldName).find((name) => overrides[name]?.excluded === true);
  if (lost !== undefined) throw refuse('field_in_use', `the key field "${lost}" cannot be excluded`);
}

/**
 * Rejects overrides that a connection cannot be run with: an excluded key or cursor, or what the check of its settings
 * would find. Findings that a connection has anyway are its own.
 * @throws ApiError 400 `field_in_use` or the code of the finding, with `connection_ids`.
 */
export async function refuseBreakingOverrides(
  ctx: Ctx,
  rows: readonly { before: Overrides; after: CatalogStreamRow }[],
): Promise<void> {
  const [first] = rows;
  if (!first) return;
  const names = rows.map(({ after }) => after.name);
  const streams = await ctx.db
    .select({ stream: connectionStreams, connector_name: accountConnectors.connector_name })
    .from(connectionStreams)
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.destination_id))
    .where(
      and(
        eq(connections.source_id, first.after.account_connector_id),
        isNull(connections.deleted_at),
        eq(connectionStreams.selected, true),
        inArray(connectionStreams.name, names),
      ),
    );
  for (const { before, after } of rows) {
    for (const { stream, connector_name } of streams) {
      if (stream.name !== after.name || stream.namespace !== after.namespace) continue;
      refuseExcludedKey(stream, after);
      const destination = findConnector('destination', connector_name);
      if (destination) refuseNewFindings(stream, { before, after, destination });
    }
  }
}

function refuseExcludedKey(stream: StreamRow, row: CatalogStreamRow): void {
  const schema = applyOverrides(discoveredStream(row), row.overrides);
  const effective = withCatalogChoices(stream, discoveredStream(row), row.overrides);
  const cursor = stream.sync_mode === 'incremental' ? cursorPath(schema, effective) : null;
  const needed = [...keyPaths(schema, effective), ...(cursor ? [cursor] : [])].map(fieldName);
  const lost = needed.find((name) => row.overrides[name]?.excluded === true);
  if (lost === undefined) return;
  throw refusal('field_in_use', `${row.name}: a connection uses "${lost}" as key or cursor`, stream);
}

function refuseNewFindings(
  stream: StreamRow,
  { before, after, destination }: { before: Overrides; after: CatalogStreamRow; destination: AnyDestination },
): void {
  const settings = settingsOf(stream);
  const find = (overrides: Overrides) =>
    checkEffects(settings, { stream: applyOverrides(discoveredStream(after), overrides), overrides, destination });
  const had = new Set(find(before).map(({ code, message }) => `${code} ${message}`));
  const found = find(after.overrides).find(({ code, message }) => !had.has(`${code} ${message}`));
  if (found) throw refusal(found.code, `${after.name}: ${found.message}`, stream);
}

const refusal = (code: string, message: string, { name, connection_id }: StreamRow) =>
  badRequest(code, message, { field: 'items', stream_name: name, connection_ids: [connection_id] });
