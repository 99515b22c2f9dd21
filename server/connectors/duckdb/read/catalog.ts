import type { DuckDBConnection } from '@duckdb/node-api';
import type { Field, StreamSchema } from '../../contract/connector.ts';
import { isReserved } from '../../contract/reserved-names.ts';
import { countDistinctTexts, DISTINCT_TEXTS, groupRows, streamOfFields } from '../../kits/sql/streams.ts';
import { DATABASE, query, type Value } from '../connection/engine.ts';
import { identifier, literal, relation } from '../connection/sql.ts';
import { DIALECT, isCursorType, logicalType } from '../connection/types.ts';

/** One row per column: schema, table, whether a view, comment, column, type, nullable, place in the primary key. */
const columnsQuery = (schemas: readonly string[]) => `
  select t.schema_name, t.name, t.is_view, t.comment, c.column_name, c.data_type, c.is_nullable,
         nullif(list_position(k.names, c.column_name), 0)
    from (select schema_name, table_name as name, false as is_view, comment from duckdb_tables()
           where database_name = '${DATABASE}' and not internal
          union all select schema_name, view_name, true, comment from duckdb_views()
           where database_name = '${DATABASE}' and not internal) t
    join duckdb_columns() c on c.database_name = '${DATABASE}' and c.schema_name = t.schema_name and c.table_name = t.name
    left join (select schema_name, table_name, any_value(constraint_column_names) as names from duckdb_constraints()
                where database_name = '${DATABASE}' and constraint_type = 'PRIMARY KEY' group by all) k
      on k.schema_name = t.schema_name and k.table_name = t.name
   ${schemas.length > 0 ? `where t.schema_name in (${schemas.map(literal).join(', ')})` : ''}
   order by t.schema_name, t.name, c.column_index`;

export async function discoverStreams(
  connection: DuckDBConnection,
  schemas: readonly string[],
): Promise<StreamSchema[]> {
  const rows = (await query(connection, columnsQuery(schemas))).filter(([, name]) => !isReserved(name as string));
  const streams = groupRows(rows, ([schema, table]) => [schema, table]).map(streamOf);
  const any = await query(connection, "select 1 from duckdb_tables() where sql ilike '%collate%' limit 1");
  if (any.length > 0) for (const stream of streams) await markInexact(connection, stream);
  return streams;
}

/** DuckDB shows the collation of a column nowhere but in the statement that created the table. */
async function markInexact(connection: DuckDBConnection, { namespace, name, fields }: StreamSchema): Promise<void> {
  for (const field of fields) {
    if (field.source_type !== 'VARCHAR') continue;
    const counting = countDistinctTexts(relation(namespace ?? 'main', name), identifier(field.path[0]!));
    // A view whose tables are gone has no collation.
    const [row] = await query(connection, counting).catch(() => []);
    if (row && Number(row[0]) < DISTINCT_TEXTS) field.inexact_order = true;
  }
}

function streamOf(rows: Value[][]): StreamSchema {
  const [schema, name, isView, comment] = rows[0] as Value[];
  const key = rows.filter((row) => row[7] != null).toSorted((a, b) => Number(a[7]) - Number(b[7]));
  return streamOfFields(rows.map(fieldOf), {
    namespace: schema as string,
    name: name as string,
    description: comment || null,
    suggested: isView === 'false',
    key: key.map((row) => row[4] as string),
  });
}

function fieldOf(row: Value[]): Field {
  const type = row[5] as string;
  return {
    path: [row[4] as string],
    type: logicalType(type),
    source_type: type,
    dialect: DIALECT,
    nullable: row[6] === 'true' && row[7] == null,
    is_primary_key: row[7] != null,
    is_cursor_candidate: isCursorType(type),
  };
}
