import { eq } from 'drizzle-orm';
import { type CatalogStreamRow, catalogStreams } from '../../../db/schema/index.ts';
import type { Field } from '../../connectors/contract/connector.ts';
import { catalogOrder, discoveredStream } from '../../catalog/store.ts';
import { applyOverrides, type FieldOverride } from '../../pipeline/overrides.ts';
import { suggestSettings } from '../../pipeline/suggest-settings.ts';
import { fieldName } from '../../pipeline/transfer-plan.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { AccountConnectorCatalogItemSchema, CatalogField } from './catalog-schema.ts';

/** The streams of a source, removed ones included, ordered by namespace and name. */
export const readCatalogRows = (ctx: Ctx, account_connector_id: string): Promise<CatalogStreamRow[]> =>
  ctx.db
    .select()
    .from(catalogStreams)
    .where(eq(catalogStreams.account_connector_id, account_connector_id))
    .orderBy(...catalogOrder());

/** A stream in the catalog: the discovered definition and the users' overrides. */
export function presentItem(row: CatalogStreamRow): AccountConnectorCatalogItemSchema {
  const schema = discoveredStream(row);
  const { fields, ...stream } = schema;
  return {
    ...stream,
    suggested_settings: suggestSettings(applyOverrides(schema, row.overrides)),
    stream_id: row.id,
    display_name: null,
    fields: fields.map((field) => presentField(field, row.overrides[fieldName(field.path)])),
    change_status: row.change_status,
    discovered_at: row.discovered_at,
    removed_at: row.removed_at,
  };
}

const UNSAID = {
  type: null,
  destination_name: null,
  description: null,
  is_primary_key: null,
  is_cursor: null,
  masking: null,
  excluded: null,
  nullable: null,
};

function presentField(
  { dialect: _dialect, layout: _layout, ...field }: Field,
  override: FieldOverride | undefined,
): CatalogField {
  return {
    ...field,
    name: fieldName(field.path),
    enum_values: null,
    sample: null,
    override: override ? { ...UNSAID, ...override } : null,
  };
}
