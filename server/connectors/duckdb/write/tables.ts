import type { DuckDBConnection } from '@duckdb/node-api';
import type { WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { DATABASE, execute, query } from '../connection/engine.ts';
import { columnList, identifier, literal, relation } from '../connection/sql.ts';
import { columnType } from '../connection/types.ts';
import { widenColumns } from './widen.ts';

export interface Column {
  name: string;
  /** As it is, or will be, in the table. */
  type: string;
}

/** A WriteTarget that DuckDB can hold, and what it means in the database as it stands. */
export interface Target extends WriteTarget {
  schema: string;
  /** Quoted. */
  relation: string;
  typed: Column[];
}

/** @throws ConfigurationError for what no DuckDB could do. Names are the same whatever their case. */
export function checkTarget(target: WriteTarget): void {
  const names = target.columns.map(({ name }) => name.toLowerCase());
  if (names.length === 0) throw new ConfigurationError('no_fields', 'No field is selected');
  if ([target.table, target.schema ?? 'main', ...names].some((name) => name === '' || name.includes('\0'))) {
    throw new ConfigurationError('invalid_name', 'Schema, table and columns need names');
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new ConfigurationError('duplicate_column', `Two fields would become the column "${twice}"`);
  if (!['append', 'overwrite'].includes(target.mode) && target.primary_key.length === 0) {
    throw new ConfigurationError('primary_key_required', `${target.table} needs a primary key for ${target.mode}`);
  }
  if (target.mode === 'soft_delete' && names.includes(DELETED_AT)) {
    throw new ConfigurationError(
      'duplicate_column',
      `The column ${DELETED_AT} is where soft_delete marks rows: give the field of this name another one`,
    );
  }
}

/** Column, in lower case, to type; null: there is no table. @throws ConfigurationError when a view is in its place. */
export async function findTable(
  connection: DuckDBConnection,
  schema: string,
  table: string,
): Promise<Map<string, string> | null> {
  const named = (name: string) =>
    `database_name = '${DATABASE}' and lower(schema_name) = lower(${literal(schema)}) and lower(${name}) = lower(${literal(table)})`;
  const views = await query(connection, `select 1 from duckdb_views() where ${named('view_name')}`);
  if (views.length > 0) {
    throw new ConfigurationError('not_a_table', `${schema}.${table} exists and is no table that could be written to`);
  }
  const rows = await query(
    connection,
    `select column_name, data_type from duckdb_columns() where ${named('table_name')}`,
  );
  return rows.length > 0 ? new Map(rows.map(([name, type]) => [(name ?? '').toLowerCase(), type ?? ''])) : null;
}

export async function createTable(connection: DuckDBConnection, target: Target): Promise<void> {
  const { relation: table, typed, mode } = target;
  const columns = [...typed, ...(mode === 'soft_delete' ? [DELETION] : [])].map(
    ({ name, type }) => `${identifier(name)} ${type}`,
  );
  await execute(connection, `CREATE TABLE ${table} (${columns.join(', ')})`);
}

/** What soft_delete marks rows in. */
const DELETION = { name: DELETED_AT, type: 'TIMESTAMP WITH TIME ZONE' };

/** The target with the types of its columns. Columns that the table lacks are added; rows there have no value for them. */
export async function placedTarget(
  connection: DuckDBConnection,
  target: WriteTarget & { schema: string },
): Promise<Target> {
  const into = relation(target.schema, target.table);
  const found = await findTable(connection, target.schema, target.table);
  const existing = target.mode === 'overwrite' ? null : found;
  if (existing) await widenColumns(connection, target, existing);
  const typed = target.columns.map((column) => ({
    name: column.name,
    type: existing?.get(column.name.toLowerCase()) ?? columnType(column),
  }));
  const wanted = [...typed, ...(target.mode === 'soft_delete' ? [DELETION] : [])];
  const missing = existing ? wanted.filter(({ name }) => !existing.has(name.toLowerCase())) : [];
  for (const { name, type } of missing) {
    await execute(connection, `ALTER TABLE ${into} ADD COLUMN ${identifier(name)} ${type}`);
  }
  return { ...target, relation: into, typed };
}

/** @throws ConfigurationError when rows that are there have the same key: they would all be replaced together. */
export async function ensureUniqueKey(connection: DuckDBConnection, target: Target): Promise<void> {
  const key = columnList(target.primary_key);
  const rows = await query(connection, `SELECT 1 FROM ${target.relation} GROUP BY ${key} HAVING count(*) > 1 LIMIT 1`);
  if (rows.length === 0) return;
  throw new ConfigurationError(
    'key_not_unique',
    `${target.table} has rows with the same ${target.primary_key.join(', ')}, so rows cannot be merged into it by this key`,
  );
}
