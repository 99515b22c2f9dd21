import type { SampledTable, TableSample } from '../../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../../contract/errors.ts';
import type { Dialect, SqlSession } from './dialect.ts';
import { REJECTED_TABLE } from './rejects.ts';

/**
 * For a table that discovery does not find: it hides those that the user may not read, as one that is gone.
 * @param asked a SELECT of nothing from it
 * @throws ConnectorError when the table is there, but refused
 */
export const goneOrRefused = (asked: Promise<unknown>): Promise<null> =>
  asked.then(
    () => null,
    (error: unknown) => {
      if (error instanceof SchemaChangedError) return null;
      throw error;
    },
  );

type Names = Pick<Dialect, 'identifier' | 'literal' | 'relation'>;

/** The first rows of a table as the database shows them. @throws ConfigurationError `destination_table_missing` */
export async function sampleTable(
  { session, dialect }: { session: Pick<SqlSession, 'query'>; dialect: Names },
  { schema, table, limit, rejected_by }: TableSample & { schema: string },
): Promise<SampledTable> {
  const { identifier, literal, relation } = dialect;
  const from = rejected_by === null ? table : REJECTED_TABLE;
  const { rows: found } = await session.query(
    `select column_name from information_schema.columns
      where table_schema = ${literal(schema)} and table_name = ${literal(from)} order by ordinal_position`,
  );
  if (found.length === 0) {
    const message = `The destination has no table ${schema}.${from}. Run the connection first`;
    throw new ConfigurationError('destination_table_missing', message);
  }
  const columns = rejected_by === null ? found.map(([name]) => name!) : REJECTED_COLUMNS;
  const where = rejected_by === null ? '' : ` where stream_run_id = ${literal(rejected_by)}`;
  const { rows } = await session.query(
    `select ${columns.map(identifier).join(', ')} from ${relation(schema, from)}${where} limit ${limit}`,
  );
  return { columns, rows };
}

const REJECTED_COLUMNS = ['reason', 'row', 'rejected_at'];
