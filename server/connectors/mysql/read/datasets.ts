import { datasetClause, datasetField, datasetStream, describedFields, withFields } from '../../kits/sql/datasets.ts';
import type { Dataset, Field, ReadRequest, StreamSchema } from '../../contract/connector.ts';
import { resultType } from './result-types.ts';
import type { MysqlSession } from '../connection/session.ts';
import { DIALECT, isCursorType, logicalType } from '../connection/types.ts';

const fieldsOf = (session: MysqlSession, dataset: Dataset): Promise<Field[]> =>
  describedFields(dataset, async () => {
    const columns = await session.describe(`select * from ${datasetClause(dataset.sql, 'q')}`);
    return columns.map((column) => {
      const source_type = resultType(column);
      const about = { type: logicalType(source_type), source_type, dialect: DIALECT };
      return datasetField(column.name, { ...about, is_cursor_candidate: isCursorType(source_type) });
    });
  });

/** Datasets as streams without a namespace. */
export async function datasetStreams(session: MysqlSession, datasets: readonly Dataset[]): Promise<StreamSchema[]> {
  const streams: StreamSchema[] = [];
  for (const dataset of datasets) streams.push(datasetStream(dataset, await fieldsOf(session, dataset)));
  return streams;
}

/** With a query: by its columns as they are now, since what is made of a column's bytes depends on its type. */
export async function asDescribed(session: MysqlSession, request: ReadRequest): Promise<ReadRequest> {
  const { dataset_sql, name } = request.stream;
  return dataset_sql === undefined ? request : withFields(request, await fieldsOf(session, { name, sql: dataset_sql }));
}
