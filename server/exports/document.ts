import type { Field, StreamSchema } from '../connectors/contract/connector.ts';
import type { FieldOverride } from '../pipeline/overrides.ts';
import { fieldName } from '../pipeline/transfer-plan.ts';

/** An export of a source's catalog with the optional parts that the request includes. */
export interface ExportDocument {
  exported_at: string;
  account_connector: { id: string; name: string; connector_name: string };
  catalog_refreshed_at: string | null;
  streams: ExportedStream[];
}

export interface ExportedStream {
  namespace: string | null;
  name: string;
  description: string | null;
  primary_key: string[];
  cursor_field: string | null;
  supported_sync_modes: string[];
  supports_date_window: boolean;
  discovered_at: string;
  /** Absent without `include_fields`. */
  fields?: ExportedField[];
  /** Absent without `include_usage`. */
  usage?: StreamUsage;
  /** Set when samples were requested and the stream could not be read. */
  sample_error?: string;
}

export interface ExportedField {
  name: string;
  type: string;
  source_type: string | null;
  nullable: boolean;
  is_primary_key: boolean;
  is_cursor_candidate: boolean;
  description: string | null;
  override: FieldOverride | null;
  /** Absent without `include_samples` and for excluded fields. Masked by the field's override. */
  samples?: string[];
}

/** Usage of a stream by the account's connections in the last 30 days. */
export interface StreamUsage {
  connections: number;
  rows_loaded: number;
  last_succeeded_at: string | null;
}

/** Describes a stream for an export. `schema` has the overrides applied. Pure. */
export function describeStream(
  schema: StreamSchema,
  about: { discovered_at: string; overrides: Record<string, FieldOverride>; include_fields: boolean },
): ExportedStream {
  const { default_cursor_field, source_defined_primary_key } = schema;
  return {
    namespace: schema.namespace,
    name: schema.name,
    description: schema.description,
    primary_key: (source_defined_primary_key ?? []).map(fieldName),
    cursor_field: default_cursor_field && fieldName(default_cursor_field),
    supported_sync_modes: schema.supported_sync_modes,
    supports_date_window: schema.supports_date_window,
    discovered_at: about.discovered_at,
    ...(about.include_fields && {
      fields: schema.fields.map((field) => describeField(field, about.overrides[fieldName(field.path)])),
    }),
  };
}

const describeField = (field: Field, override: FieldOverride | undefined): ExportedField => ({
  name: fieldName(field.path),
  type: field.type,
  source_type: field.source_type,
  nullable: field.nullable,
  is_primary_key: field.is_primary_key,
  is_cursor_candidate: field.is_cursor_candidate,
  description: override?.description ?? null,
  override: override ?? null,
});
