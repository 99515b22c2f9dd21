import type { Field, StreamSchema } from '../../contract/connector.ts';
import { isReserved } from '../../contract/reserved-names.ts';
import { groupRows, streamOfFields } from '../../kits/sql/streams.ts';
import type { MysqlSession, Row } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import { DIALECT, isCursorType, logicalType } from '../connection/types.ts';

/** One row per column: table, kind, comment, column, type, nullable, place in the primary key, collation. */
const columnsQuery = (database: string, table?: string) => `
  select t.table_name, t.table_type, t.table_comment, c.column_name, c.column_type, c.is_nullable, k.seq_in_index,
         c.collation_name
    from information_schema.tables t
    join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name
    left join information_schema.statistics k on k.table_schema = c.table_schema and k.table_name = c.table_name
         and k.column_name = c.column_name and k.index_name = 'PRIMARY'
   where t.table_schema = ${literal(database)} and t.table_type <> 'SEQUENCE'
     and find_in_set('select', replace(c.privileges, ' ', ''))
     ${table === undefined ? '' : `and t.table_name = ${literal(table)}`}
   order by t.table_name, c.ordinal_position`;

/** MariaDB's JSON is a LONGTEXT with a CHECK constraint. */
const jsonQuery = (database: string) => `
  select table_name, constraint_name from information_schema.check_constraints
   where constraint_schema = ${literal(database)} and check_clause like 'json_valid(%)'`;

async function columnsOf(session: MysqlSession, database: string, table?: string): Promise<Row[]> {
  const { rows } = await session.query(columnsQuery(database, table));
  return rows.filter(([name]) => !isReserved(name!));
}

export const countTables = async (session: MysqlSession, database: string): Promise<number> =>
  new Set((await columnsOf(session, database)).map(([table]) => table)).size;

/** @param table limits the streams to one table */
export async function discoverStreams(
  session: MysqlSession,
  database: string,
  table?: string,
): Promise<StreamSchema[]> {
  const rows = await columnsOf(session, database, table);
  const json = new Set<string>();
  if (session.version.flavor === 'MariaDB') {
    for (const names of (await session.query(jsonQuery(database))).rows) json.add(JSON.stringify(names));
  }
  for (const row of rows) if (row[4] === 'longtext' && json.has(JSON.stringify([row[0], row[3]]))) row[4] = 'json';
  return groupRows(rows, ([name]) => name).map((columns) => streamOf(database, columns));
}

function streamOf(database: string, rows: Row[]): StreamSchema {
  const [name, kind, comment] = rows[0]!;
  const isTable = kind !== 'VIEW' && kind !== 'SYSTEM VIEW';
  const key = rows.filter((row) => row[6] !== null).toSorted((a, b) => Number(a[6]) - Number(b[6]));
  return streamOfFields(rows.map(fieldOf), {
    namespace: database,
    name: name!,
    description: (isTable && comment) || null,
    suggested: isTable,
    key: key.map((row) => row[3]!),
  });
}

function fieldOf(row: Row): Field {
  const [, , , name, type, nullable, keyPlace, collation] = row;
  return {
    path: [name!],
    type: logicalType(type!),
    source_type: type!,
    dialect: DIALECT,
    nullable: nullable === 'YES',
    is_primary_key: keyPlace !== null,
    is_cursor_candidate: isCursorType(type!),
    ...(collation !== null && !collation!.endsWith('_bin') && { inexact_order: true }),
  };
}
