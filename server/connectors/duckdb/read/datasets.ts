import type { DuckDBConnection } from '@duckdb/node-api';
import { duckdb } from '../../kits/duckdb/package.ts';
import { datasetClause, datasetField, datasetStream, describedFields, withFields } from '../../kits/sql/datasets.ts';
import type { Dataset, Field, ReadRequest, StreamSchema } from '../../contract/connector.ts';
import { ConfigurationError, ConnectorError, TimeoutError } from '../../contract/errors.ts';
import { query } from '../connection/engine.ts';
import { duckDbError } from '../connection/failures.ts';
import type { Opened } from '../connection/file-access.ts';
import { DIALECT, isCursorType, logicalType } from '../connection/types.ts';

/** As long as other databases have for the description of a query. */
const DESCRIBE_MS = 60_000;

/**
 * The fields of a query, which is not run for it.
 * @throws ConfigurationError naming the dataset: it is no single query, fails, or has two columns of one name
 */
const fieldsOf = ({ connection, place }: Opened, dataset: Dataset): Promise<Field[]> =>
  describedFields(dataset, async () => {
    let isLate = false;
    const timer = setTimeout(() => ((isLate = true), connection.interrupt()), DESCRIBE_MS);
    try {
      await assertQuery(connection, dataset.sql);
      const rows = await query(connection, `DESCRIBE SELECT * FROM ${datasetClause(dataset.sql, 'q')}`);
      return rows.map(([name, type]) => fieldOf(name ?? '', type ?? ''));
    } catch (error) {
      if (error instanceof ConnectorError) throw error;
      if (isLate) throw new TimeoutError('query_timeout', `Dataset "${dataset.name}" was not described in time`);
      throw duckDbError(error, place);
    } finally {
      clearTimeout(timer);
    }
  });

const fieldOf = (name: string, source_type: string): Field =>
  datasetField(name, {
    type: logicalType(source_type),
    source_type,
    dialect: DIALECT,
    is_cursor_candidate: isCursorType(source_type),
  });

/**
 * What is a statement by itself and within brackets too (where it is described) is one query: what closes them is a
 * mistake without. The file is open for reading alone, and there is nothing else that the engine can reach.
 */
async function assertQuery(connection: DuckDBConnection, sql: string): Promise<void> {
  const statements = await connection.extractStatements(sql).catch((error: Error) => {
    const [, mistake] = /(Parser Error: .*)/.exec(error.message) ?? [];
    // Without one there is nothing but comments, which the driver fails at.
    throw new ConfigurationError('statement_refused', mistake ?? 'There is no query in it');
  });
  if (statements.count !== 1) throw new ConfigurationError('statement_refused', 'It has to be one query, and no more');
  const statement = await statements.prepare(0);
  try {
    if (statement.statementType !== duckdb().StatementType.SELECT) {
      throw new ConfigurationError('statement_refused', 'It has to be a query that reads');
    }
    if (statement.parameterCount > 0) {
      throw new ConfigurationError('statement_refused', 'The query has a parameter where a value should be');
    }
    const names = Array.from({ length: statement.columnCount }, (_, at) => statement.columnName(at).toLowerCase());
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    // In brackets the second one gets another name.
    if (twice !== undefined) throw new ConfigurationError('duplicate_column', `two columns are named "${twice}"`);
  } finally {
    statement.destroySync();
  }
}

/** Datasets as streams without a namespace. */
export async function datasetStreams(opened: Opened, datasets: readonly Dataset[] = []): Promise<StreamSchema[]> {
  const streams: StreamSchema[] = [];
  for (const dataset of datasets) streams.push(datasetStream(dataset, await fieldsOf(opened, dataset)));
  return streams;
}

/** With a query: by its columns as they are now. */
export async function asDescribed(opened: Opened, request: ReadRequest): Promise<ReadRequest> {
  const { dataset_sql, name } = request.stream;
  return dataset_sql === undefined ? request : withFields(request, await fieldsOf(opened, { name, sql: dataset_sql }));
}
