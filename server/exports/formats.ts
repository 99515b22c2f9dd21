import type { ExportDocument, ExportedStream } from './document.ts';

export type ExportFormat = 'json' | 'csv' | 'openlineage';

export const EXPORT_TYPES: Record<ExportFormat, { content_type: string; ending: string }> = {
  json: { content_type: 'application/json', ending: 'json' },
  csv: { content_type: 'text/csv; charset=utf-8', ending: 'csv' },
  openlineage: { content_type: 'application/x-ndjson', ending: 'jsonl' },
};

/** Formats an export. `dataset_namespace` identifies the source in OpenLineage. Pure. */
export function formatExport(document: ExportDocument, format: ExportFormat, dataset_namespace: string): string {
  if (format === 'json') return `${JSON.stringify(document, null, 2)}\n`;
  if (format === 'csv') return table(csvRows(document));
  return document.streams
    .map((stream) => `${JSON.stringify(datasetEvent(document, stream, dataset_namespace))}\n`)
    .join('');
}

export type ExportValue = string | number | boolean | null | undefined;
export type ExportRow = Record<string, ExportValue>;

/** One row per field, or one per stream when fields were not requested. */
export function csvRows({ streams }: ExportDocument): ExportRow[] {
  return streams.flatMap((stream): ExportRow[] => {
    const about = {
      namespace: stream.namespace,
      stream: stream.name,
      stream_description: stream.description,
      discovered_at: stream.discovered_at,
    };
    const usage = stream.usage && {
      connections: stream.usage.connections,
      rows_loaded: stream.usage.rows_loaded,
      last_succeeded_at: stream.usage.last_succeeded_at,
    };
    if (!stream.fields) {
      const keys = { primary_key: stream.primary_key.join(', '), cursor_field: stream.cursor_field };
      return [{ ...about, ...keys, ...usage }];
    }
    return stream.fields.map(({ override, samples, ...field }) => ({
      ...about,
      field: field.name,
      type: field.type,
      source_type: field.source_type,
      nullable: field.nullable,
      is_primary_key: field.is_primary_key,
      is_cursor: field.name === stream.cursor_field,
      description: field.description,
      destination_name: override?.destination_name ?? null,
      destination_type: override?.type ?? null,
      masking: override?.masking ?? 'none',
      excluded: override?.excluded ?? false,
      ...(samples && { samples: JSON.stringify(samples) }),
      ...usage,
    }));
  });
}

/** RFC 4180. The columns are the union over all rows: not every stream has samples. */
function table(rows: ExportRow[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((cells) => `${cells.map(cell).join(',')}\r\n`).join('');
}

function cell(value: ExportValue): string {
  const text = value == null ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const PRODUCER = 'urn:data-pipelines';
const FACETS = 'https://openlineage.io/spec/facets';

/** A DatasetEvent of OpenLineage 2: metadata that does not belong to a run. */
function datasetEvent(document: ExportDocument, stream: ExportedStream, namespace: string) {
  const facet = (schema: string) => ({ _producer: PRODUCER, _schemaURL: `${FACETS}/${schema}` });
  return {
    eventTime: document.exported_at,
    producer: PRODUCER,
    schemaURL: 'https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent',
    dataset: {
      namespace,
      name: stream.namespace === null ? stream.name : `${stream.namespace}.${stream.name}`,
      facets: {
        datasource: {
          ...facet('1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet'),
          name: document.account_connector.name,
          uri: namespace,
        },
        ...(stream.description !== null && {
          documentation: {
            ...facet('1-0-1/DocumentationDatasetFacet.json#/$defs/DocumentationDatasetFacet'),
            description: stream.description,
          },
        }),
        ...(stream.fields && {
          schema: {
            ...facet('1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet'),
            fields: stream.fields.map(({ name, type, source_type, description }) => ({
              name,
              type: source_type ?? type,
              ...(description !== null && { description }),
            })),
          },
        }),
      },
    },
  };
}
