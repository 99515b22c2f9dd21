import type { CheckResult, Dataset, Field, LogicalType, ReadRequest, StreamSchema } from '../../contract/connector.ts';
import { ConfigurationError, ConnectorError, SchemaChangedError } from '../../contract/errors.ts';

const DATES: ReadonlySet<LogicalType> = new Set(['date', 'timestamp', 'timestamp_tz']);

/** The query as a table: what ends it must not end ours, be it a semicolon or a comment. */
export const datasetClause = (sql: string, alias: string) => `(\n${sql.replace(/[;\s]+$/, '')}\n) ${alias}`;

/** A field of a query: nothing but its type is known. */
export const datasetField = (name: string, about: Omit<Field, 'path' | 'nullable' | 'is_primary_key'>): Field => ({
  path: [name],
  ...about,
  nullable: true,
  is_primary_key: false,
});

/**
 * Runs what describes a query.
 * @throws ConfigurationError naming the dataset: it is no single query, fails, or has two columns of one name
 */
export async function describedFields({ name }: Dataset, describe: () => Promise<Field[]>): Promise<Field[]> {
  const fields = await describe().catch((error: unknown) => {
    if (!(error instanceof ConnectorError) || error.retryable) throw error;
    throw new ConfigurationError('invalid_dataset', `Dataset "${name}": ${error.message}`, { cause: error });
  });
  const names = fields.map(({ path }) => path[0]);
  const twice = names.find((one, at) => names.indexOf(one) !== at);
  if (twice === undefined) return fields;
  throw new ConfigurationError('invalid_dataset', `Dataset "${name}": two columns are named "${twice}"`);
}

/** A query as a stream without a namespace. */
export const datasetStream = ({ name, sql }: Dataset, fields: Field[]): StreamSchema => ({
  namespace: null,
  name,
  description: null,
  fields,
  supported_sync_modes: ['full_refresh', 'incremental'],
  source_defined_cursor: false,
  default_cursor_field: null,
  source_defined_primary_key: null,
  is_resumable: fields.some((field) => field.is_cursor_candidate),
  supports_date_window: fields.some((field) => DATES.has(field.type)),
  suggested: true,
  dataset_sql: sql,
});

export const datasetsCheck = (datasets: readonly unknown[]): CheckResult['checks'] =>
  datasets.length === 0
    ? []
    : [{ title: 'Datasets', status: 'passed', message: `${datasets.length} queries can be read` }];

/**
 * The request with the fields as the query gives them now: its tables may have changed since it was discovered.
 * @throws SchemaChangedError when a column that is to be read is gone.
 */
export function withFields(request: ReadRequest, fields: Field[]): ReadRequest {
  const { stream } = request;
  const columns = request.columns.map(({ field, ...column }) => {
    const now = fields.find(({ path }) => path[0] === field.path[0]);
    if (now) return { ...column, field: now };
    throw new SchemaChangedError('column_missing', `${stream.name} has no column ${field.path.join('.')}`);
  });
  return { ...request, columns, stream: { ...stream, fields } };
}
