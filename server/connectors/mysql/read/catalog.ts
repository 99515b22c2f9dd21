import type { Field, StreamSchema } from '../../contract/connector.ts';
import { isReserved } from '../../contract/reserved-names.ts';
import { groupRows, loggedStream, streamOfFields } from '../../kits/sql/streams.ts';
import type { MysqlSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import { bareName, DIALECT, isCursorType, isSpatial, logicalType } from '../connection/types.ts';
import type { Row } from '../connection/result.ts';

const within = (schema: 'table_schema' | 'constraint_schema', database: string, table?: string) =>
  `${schema} = ${literal(database)}${table === undefined ? '' : ` and table_name = ${literal(table)}`}`;

const tablesQuery = (database: string, table?: string) => `
  select table_name, table_type, table_comment, engine from information_schema.tables
   where ${within('table_schema', database, table)} and table_type <> 'SEQUENCE'`;

const columnsQuery = (database: string, table?: string) => `
  select table_name, column_name, column_type, is_nullable, collation_name, character_set_name, extra
    from information_schema.columns
   where ${within('table_schema', database, table)} and find_in_set('select', replace(privileges, ' ', ''))
   order by table_name, ordinal_position`;

const keysQuery = (database: string, table?: string) => `
  select table_name, column_name, seq_in_index from information_schema.statistics
   where ${within('table_schema', database, table)} and index_name = 'PRIMARY'`;

/** MariaDB's JSON is a LONGTEXT with a CHECK constraint. */
const jsonQuery = (database: string, table?: string) => `
  select table_name, constraint_name from information_schema.check_constraints
   where ${within('constraint_schema', database, table)} and check_clause like 'json_valid(%)'`;

const placeOf = (table: string | null, column: string | null) => JSON.stringify([table, column]);

/**
 * One row per column: table, kind, comment, column, type, nullable, place in the primary key, collation, character set,
 * what generates it, engine. Joined here: for a join of these views MariaDB looks through all databases, which takes 25
 * to 50 ms, where each of them alone takes less than one.
 */
async function columnsOf(session: MysqlSession, database: string, table?: string): Promise<Row[]> {
  const rowsOf = async (query: typeof tablesQuery) => (await session.query(query(database, table))).rows;
  const tables = new Map((await rowsOf(tablesQuery)).map((row) => [row[0], row]));
  const columns = await rowsOf(columnsQuery);
  const keys = new Map((await rowsOf(keysQuery)).map(([name, column, place]) => [placeOf(name!, column!), place!]));
  return columns.flatMap(([name, column, type, nullable, collation, charset, extra]): Row[] => {
    const [, kind, comment, engine] = tables.get(name) ?? [];
    if (kind === undefined || isReserved(name!)) return [];
    const place = keys.get(placeOf(name!, column!)) ?? null;
    return [[name, kind, comment, column, type, nullable, place, collation, charset, extra, engine] as Row];
  });
}

export const countTables = async (session: MysqlSession, database: string): Promise<number> =>
  new Set((await columnsOf(session, database)).map(([table]) => table)).size;

/**
 * @param table limits the streams to one table
 * @param logged tables whose changes the binary log has in full are read from it
 */
export async function discoverStreams(
  session: MysqlSession,
  { database, table, logged }: { database: string; table?: string; logged: boolean },
): Promise<StreamSchema[]> {
  const rows = await columnsOf(session, database, table);
  const json = new Set<string>();
  if (session.version.flavor === 'MariaDB') {
    const { rows: checks } = await session.query(jsonQuery(database, table));
    for (const [name, column] of checks) json.add(placeOf(name!, column!));
  }
  for (const row of rows) if (row[4] === 'longtext' && json.has(placeOf(row[0]!, row[3]!))) row[4] = 'json';
  const tables = groupRows(rows, ([name]) => name);
  if (!logged) return tables.map((columns) => streamOf(database, columns));
  const unlogged = await unloggedTables(session, { database, table, tables });
  return tables.map((columns) =>
    unlogged.has(columns[0]![0]!) ? streamOf(database, columns) : loggedStreamOf(database, columns),
  );
}

/** Tables whose changes the log does not have in full, and why. */
export async function findUnlogged(session: MysqlSession, database: string): Promise<Map<string, string>> {
  const tables = groupRows(await columnsOf(session, database), ([name]) => name);
  return unloggedTables(session, { database, tables });
}

async function unloggedTables(
  session: MysqlSession,
  { database, table, tables }: { database: string; table?: string; tables: readonly Row[][] },
): Promise<Map<string, string>> {
  const { rows } = await session.query(
    `select distinct table_name from information_schema.referential_constraints
      where ${within('constraint_schema', database, table)} and (delete_rule in (${CASCADES}) or update_rule in (${CASCADES}))`,
  );
  const cascading = new Set(rows.map(([name]) => name!));
  const found = tables.flatMap((columns) => {
    const name = columns[0]![0]!;
    const reason = cascading.has(name)
      ? 'its foreign key changes rows by ON DELETE or ON UPDATE, which the log does not have'
      : unloggedReason(columns);
    return reason === null ? [] : [[name, reason] as const];
  });
  return new Map(found);
}

const CASCADES = "'CASCADE', 'SET NULL', 'SET DEFAULT'";

function unloggedReason(rows: Row[]): string | null {
  const [[, kind, , , , , , , , , engine] = []] = rows;
  if (kind !== 'BASE TABLE') return `it is a ${kind!.toLowerCase()}`;
  if (engine !== 'InnoDB') return `its engine is ${engine}, which has no snapshots`;
  for (const [, , , column, type, , , , charset] of rows) {
    const bare = bareName(type!);
    if (isSpatial(type!) || bare === 'vector') return `the type ${bare} of ${column} cannot be read from the log`;
    if (UNREADABLE_CHARSETS.has(charset ?? ''))
      return `the character set ${charset} of ${column} cannot be read from the log`;
  }
  return null;
}

/** Of several bytes, and not a form of Unicode. */
const UNREADABLE_CHARSETS: ReadonlySet<string> = new Set(
  'big5 ujis sjis euckr gb2312 gbk cp932 eucjpms gb18030'.split(' '),
);

function streamOf(database: string, rows: Row[]): StreamSchema {
  const [name, kind, comment] = rows[0]!;
  const isTable = kind !== 'VIEW' && kind !== 'SYSTEM VIEW';
  return streamOfFields(rows.map(fieldOf), {
    namespace: database,
    name: name!,
    description: (isTable && comment) || null,
    suggested: isTable,
    key: keyOf(rows),
  });
}

const keyOf = (rows: Row[]) =>
  rows
    .filter((row) => row[6] !== null)
    .toSorted((a, b) => Number(a[6]) - Number(b[6]))
    .map((row) => row[3]!);

function loggedStreamOf(database: string, rows: Row[]): StreamSchema {
  // The log has no reliable values of columns that are computed when they are read.
  const stream = streamOf(
    database,
    rows.filter((row) => !/VIRTUAL GENERATED/i.test(row[9] ?? '')),
  );
  return loggedStream(stream, keyOf(rows));
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
