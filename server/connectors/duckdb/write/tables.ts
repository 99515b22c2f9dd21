import type { DuckDBConnection } from '@duckdb/node-api';
import { ConfigurationError } from '../../contract/errors.ts';
import { keyNotUnique } from '../../kits/sql/tables.ts';
import type { ExistingTable, PlacedTarget } from '../../kits/sql/target.ts';
import { DATABASE, query } from '../connection/engine.ts';
import { columnList, literal, relation } from '../connection/sql.ts';

/** Null: there is no such table. @throws ConfigurationError when a view has the name. */
export async function findTable(
  connection: DuckDBConnection,
  schema: string,
  table: string,
): Promise<ExistingTable | null> {
  const named = (name: string) =>
    `database_name = '${DATABASE}' and lower(schema_name) = lower(${literal(schema)}) and lower(${name}) = lower(${literal(table)})`;
  const views = await query(connection, `select 1 from duckdb_views() where ${named('view_name')}`);
  if (views.length > 0) {
    throw new ConfigurationError(
      'not_a_table',
      `${schema}.${table} is not a table. Rows can only be written to tables`,
    );
  }
  const rows = await query(
    connection,
    `select column_name, data_type from duckdb_columns() where ${named('table_name')}`,
  );
  if (rows.length === 0) return null;
  return { types: new Map(rows.map(([name, type]) => [(name ?? '').toLowerCase(), type ?? ''])) };
}

/** @throws ConfigurationError when several rows have the same key: a merge would replace all of them. */
export async function assertUniqueKey(connection: DuckDBConnection, target: PlacedTarget): Promise<void> {
  const key = columnList(target.primary_key);
  const table = relation(target.schema, target.table);
  const rows = await query(connection, `SELECT 1 FROM ${table} GROUP BY ${key} HAVING count(*) > 1 LIMIT 1`);
  if (rows.length > 0) throw keyNotUnique(target);
}
