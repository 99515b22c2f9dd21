import type { CheckResult, Dataset, Field, ReadRequest, StreamSchema } from '../../contract/connector.ts';
import { streamOfFields } from './streams.ts';
import { ConfigurationError, ConnectorError, SchemaChangedError } from '../../contract/errors.ts';

/** The query as a table. A semicolon or a comment at its end must not affect the surrounding statement. */
export function datasetClause(sql: string, alias: string): string {
  let end = sql.length;
  // Not by a pattern: it would start over at each blank.
  while (end > 0 && /[;\s]/.test(sql[end - 1]!)) end -= 1;
  return `(\n${sql.slice(0, end)}\n) ${alias}`;
}

/** A field of a query, of which only the type is known. */
export const datasetField = (name: string, about: Omit<Field, 'path' | 'nullable' | 'is_primary_key'>): Field => ({
  path: [name],
  ...about,
  nullable: true,
  is_primary_key: false,
});

/**
 * Runs the description of a query.
 * @throws ConfigurationError naming the dataset: it is not a single query, fails, or has two columns of the same name
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
  ...streamOfFields(fields, { namespace: null, name, description: null, suggested: true }),
  default_cursor_field: null,
  dataset_sql: sql,
});

export const datasetsCheck = (datasets: readonly unknown[]): CheckResult['checks'] =>
  datasets.length === 0
    ? []
    : [{ title: 'Datasets', status: 'passed', message: `${datasets.length} readable queries` }];

/**
 * The request with the present fields of the query: its tables may have changed since discovery.
 * @throws SchemaChangedError when a requested column no longer exists.
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
