import { valueType } from '../../cells/value-types.ts';
import type { Dialect } from '../../kits/sql/dialect.ts';
import { exactCollation, type ServerVersion } from '../connection/server-version.ts';
import { identifier, literal, MAX_NAME_CHARACTERS, relation } from '../connection/sql.ts';
import { DIALECT, logicalType } from '../connection/types.ts';
import { columnTypes } from './column-types.ts';
import { mergeSql } from './merge.ts';
import { widens } from './widen.ts';

export const mysqlNameRules: Dialect['names'] = {
  product: 'MySQL',
  schema: 'database',
  max: { length: MAX_NAME_CHARACTERS, unit: 'characters' },
  // No characters beyond the basic plane, and trailing blanks would be cut off.
  invalid: /[\0\ud800-\udfff]|\s$/,
  // Of InnoDB.
  system_columns: new Set(['db_row_id', 'db_trx_id', 'db_roll_ptr']),
  // Columns on every server, tables on those that store their names in lower case.
  fold: (name) => name.toLowerCase(),
};

/** MySQL and MariaDB: the version decides on types and collations. */
export const mysqlDialect = (version: ServerVersion): Dialect => ({
  names: mysqlNameRules,
  identifier,
  literal,
  relation,
  types: {
    id: 'varchar(255)',
    text: 'longtext',
    // Not JSON: MySQL's keeps numbers as doubles.
    state: 'longtext',
    json: 'json',
    boolean: 'tinyint(1)',
    instant: 'datetime(6)',
  },
  now: 'utc_timestamp(6)',
  tableOptions: `engine = InnoDB row_format = dynamic default character set utf8mb4 collate ${exactCollation(version)}`,
  hasKeys: true,
  forUpdate: ' for update',
  insertIfAbsent: ({ table, columns, values }) => `insert ignore into ${table} (${columns}) values (${values})`,
  findNames: (schema, table) =>
    `select (select 1 from information_schema.schemata where schema_name = ${literal(schema)}),
      (select 1 from information_schema.tables
        where table_schema = ${literal(schema)} and table_name = ${literal(table)}),
      (select concat('["', group_concat(column_name separator '","'), '"]') from information_schema.columns
        where table_schema = ${literal(schema)} and table_name = ${literal(table)})`,
  createSchema: (schema) => `create database ${identifier(schema)} default character set utf8mb4`,
  columnTypes: (columns, primaryKey) => columnTypes(columns, { primaryKey, version }),
  holds: (type) => valueType({ type: logicalType(type), source_type: type, dialect: DIALECT }),
  texts: { nul: true, unread_json: true },
  widens,
  changeType: ({ name, type, isKey }) => `modify column ${identifier(name)} ${type} ${isKey ? 'not null' : 'null'}`,
  alterTable: (table, changes) => [`alter table ${table} ${changes.join(', ')}`],
  merge: mergeSql,
});
