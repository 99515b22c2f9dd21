import { and, eq, inArray, isNull } from 'drizzle-orm';
import { type CatalogStreamRow, connections, connectionStreams } from '../../../db/schema/index.ts';
import type { StreamSchema } from '../../connectors/contract/connector.ts';
import { applyOverrides, incompatibility, type Overrides, withCatalogChoices } from '../../pipeline/overrides.ts';
import { cursorPath, fieldName, keyPaths } from '../../pipeline/transfer-plan.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { schemaOf } from './catalog-items.ts';

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
 * Rejects excluding a field that a connection uses as key or cursor.
 * @throws ApiError 400 `field_in_use` with `connection_ids`.
 */
export async function refuseExcludedKeys(ctx: Ctx, rows: CatalogStreamRow[]): Promise<void> {
  const excluding = rows.filter((row) => Object.values(row.overrides).some((override) => override.excluded === true));
  if (excluding.length === 0) return;
  const streams = await ctx.db
    .select({ stream: connectionStreams })
    .from(connectionStreams)
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .where(
      and(
        eq(connections.source_id, excluding[0]!.account_connector_id),
        isNull(connections.deleted_at),
        eq(connectionStreams.selected, true),
        inArray(
          connectionStreams.name,
          excluding.map((row) => row.name),
        ),
      ),
    );
  for (const row of excluding) {
    const mine = streams
      .map(({ stream }) => stream)
      .filter((one) => one.name === row.name && one.namespace === row.namespace);
    for (const stream of mine) {
      const schema = applyOverrides(schemaOf(row), row.overrides);
      const effective = withCatalogChoices(stream, schemaOf(row), row.overrides);
      const cursor = stream.sync_mode === 'incremental' ? cursorPath(schema, effective) : null;
      const needed = [...keyPaths(schema, effective), ...(cursor ? [cursor] : [])].map(fieldName);
      const lost = needed.find((name) => row.overrides[name]?.excluded === true);
      if (lost === undefined) continue;
      throw badRequest('field_in_use', `${row.name}: a connection uses "${lost}" as key or cursor`, {
        field: 'items',
        stream_name: row.name,
        connection_ids: [stream.connection_id],
      });
    }
  }
}
