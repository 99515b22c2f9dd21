import { datasetClause, datasetField, datasetStream, describedFields } from '../../kits/sql/datasets.ts';
import type { Dataset, Field, StreamSchema } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { isOrdered } from '../../kits/sql/streams.ts';
import type { PgSession } from '../connection/session.ts';
import { DIALECT, logicalType } from '../connection/types.ts';

/**
 * The fields of a query, without running it. The surrounding transaction must be read only.
 * @throws ConfigurationError naming the dataset: it is not a single query, fails, or has two columns of the same name
 */
export async function datasetFields(session: PgSession, dataset: Dataset): Promise<Field[]> {
  return describedFields(dataset, async () => {
    const columns = await session.describe(`select * from ${datasetClause(dataset.sql, 'q')} limit 0`).catch(refuse);
    const list = (values: number[]) => `{${values.join(',')}}`;
    const { rows } = await session.query(
      `select format_type(t.oid, c.modifier), case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end
         from unnest($1::oid[], $2::int[]) with ordinality as c (type, modifier, place) join pg_type t on t.oid = c.type
        order by c.place`,
      { values: [list(columns.map((column) => column.type)), list(columns.map((column) => column.modifier))] },
    );
    return columns.map((column, at) => {
      const [source_type = null, base = null] = rows[at] ?? [];
      const type = logicalType(base ?? source_type ?? 'text');
      return datasetField(column.name, {
        type,
        source_type,
        dialect: DIALECT,
        is_cursor_candidate: isOrdered(type),
      });
    });
  });
}

/** The server reports an unbound parameter as a protocol error, which would be retried. */
function refuse(error: Error): never {
  if (!/bind message supplies 0 parameters/.test(error.message)) throw error;
  throw new ConfigurationError('statement_refused', 'The query has a parameter. Replace it by a value');
}

/** Datasets as streams without a namespace. */
export async function datasetStreams(session: PgSession, datasets: readonly Dataset[]): Promise<StreamSchema[]> {
  if (datasets.length === 0) return [];
  const streams: StreamSchema[] = [];
  await session.query('begin read only');
  for (const dataset of datasets) streams.push(datasetStream(dataset, await datasetFields(session, dataset)));
  await session.query('rollback');
  return streams;
}
