import { valueType } from '../../cells/value-types.ts';
import type { Dialect } from '../../kits/sql/dialect.ts';
import { DATABASE } from '../connection/engine.ts';
import { identifier, literal, relation } from '../connection/sql.ts';
import { columnType, DIALECT, logicalType } from '../connection/types.ts';
import { widens } from './widen.ts';
import { deleteUsing, updateFrom } from '../../kits/sql/merge/merge-dialect.ts';

const same = (column: string, name: string) => `lower(${column}) = lower(${literal(name)})`;

export const duckdb: Dialect = {
  names: { product: 'DuckDB', schema: 'schema', max: null, invalid: /\0/, fold: (name) => name.toLowerCase() },
  identifier,
  literal,
  relation,
  types: {
    id: 'VARCHAR',
    text: 'VARCHAR',
    state: 'JSON',
    json: 'JSON',
    boolean: 'BOOLEAN',
    instant: 'TIMESTAMP WITH TIME ZONE',
  },
  now: 'now()',
  tableOptions: '',
  // A file has one writer, and a key of DuckDB mistakes an update for a duplicate row.
  hasKeys: false,
  forUpdate: '',
  insertIfAbsent: ({ table, columns, values, key }) =>
    `insert into ${table} (${columns}) select ${values} where not exists (select 1 from ${table} where ${key})`,
  findNames: (schema, table) => {
    const here = `database_name = '${DATABASE}' and ${same('schema_name', schema)}`;
    return `select (select 1 from duckdb_schemas() where ${here} limit 1),
      (select 1 from duckdb_tables() where ${here} and ${same('table_name', table)} limit 1),
      (select to_json(list(column_name))::varchar from duckdb_columns()
        where ${here} and ${same('table_name', table)})`;
  },
  createSchema: (schema) => `create schema ${DATABASE}.${identifier(schema)}`,
  columnTypes: (columns) => columns.map(columnType),
  holds: (type) => valueType({ type: logicalType(type), source_type: type, dialect: DIALECT }),
  texts: { nul: true },
  widens,
  changeType: ({ name, type }) => `alter column ${identifier(name)} set data type ${type}`,
  alterTable: (table, changes) => changes.map((change) => `alter table ${table} ${change}`),
  merge: {
    indexesLatest: true,
    differs: (pairs) => pairs.map(([one, other]) => `${one} is distinct from ${other}`).join(' or '),
    update: updateFrom,
    remove: deleteUsing,
    upsert: ({ relation: table, columns, from, marks, isReplaced }) => {
      const on = columns.filter(({ isKey }) => isKey).map(({ staged, own }) => `t.${own} = s.${staged}`);
      const rest = columns.filter(({ isKey }) => !isKey).map(({ staged, own }) => `${own} = s.${staged}`);
      const set = [...rest, ...marks].join(', ');
      const replaced = isReplaced(({ staged }) => `s.${staged}`);
      const names = columns.map(({ own }) => own).join(', ');
      const values = columns.map(({ staged }) => `s.${staged}`).join(', ');
      return `merge into ${table} as t using (${from}) as s on ${on.join(' and ')}
        ${set ? `when matched and ${replaced} then update set ${set}` : ''}
        when not matched then insert (${names}) values (${values})`;
    },
  },
};
