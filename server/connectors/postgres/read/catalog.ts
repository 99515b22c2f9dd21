import type { ConnectorContext, Field, StreamSchema } from '../../contract/connector.ts';
import { isReserved } from '../../contract/reserved-names.ts';
import { groupRows, isOrdered, loggedStream, streamOfFields } from '../../kits/sql/streams.ts';
import { datasetStreams } from './datasets.ts';
import type { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';
import { DIALECT, logicalType } from '../connection/types.ts';
import type { Row } from '../connection/result.ts';
import { detailsOf, OF_TYPE } from './details.ts';
import { tablesWithUnloggedParts } from './partitions.ts';

/** Schemas that belong to users, not to the system. */
export const USER_SCHEMAS = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'";

const schemaCondition = (schemas: string[]) =>
  schemas.length ? `n.nspname in (${schemas.map(literal).join(', ')})` : USER_SCHEMAS;

/**
 * Readable relations: tables, partitioned tables (as a whole), views, materialized views, foreign tables.
 * Not those of extensions.
 */
const READABLE = `c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and has_schema_privilege(n.oid, 'usage') and has_any_column_privilege(c.oid, 'select')
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`;

/** Whether the log has the changes of table `c`, if it has those of its partitions. */
const IS_LOGGED = `c.relpersistence = 'p' and (c.relkind = 'p' or c.relkind = 'r' and not exists
  (select from pg_inherits h where h.inhparent = c.oid))`;

/**
 * One row per column: schema, table, kind, comment, column, type, base type, not null, place in the primary key, replica
 * identity, place in the index of that, generated, collation that treats different texts as equal, can be
 * published as it reads, key that is checked at once, values of an enum type (of one table only).
 */
const columnsQuery = (schemas: string[], table?: string) => `
  select n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), a.attname,
         format_type(a.atttypid, a.atttypmod),
         case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end,
         a.attnotnull, array_position(i.indkey::int2[], a.attnum), c.relreplident,
         array_position(ri.indkey::int2[], a.attnum), a.attgenerated <> '', not co.collisdeterministic,
         ${IS_LOGGED},
         i.indimmediate, ${table === undefined ? 'null' : `exists (select from pg_enum e where ${OF_TYPE})`}
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_collation co on co.oid = a.attcollation
    left join pg_index i on i.indrelid = c.oid and i.indisprimary
    left join pg_index ri on ri.indrelid = c.oid and ri.indisreplident
   where ${schemaCondition(schemas)} and ${READABLE} and has_column_privilege(c.oid, a.attnum, 'select')
     ${table === undefined ? '' : `and c.relname = ${literal(table)}`}
   order by n.nspname, c.relname, a.attnum`;

/** Counts the readable relations of each of the schemas. */
export async function readableSchemas(session: PgSession, schemas: string[]): Promise<Map<string, number>> {
  const { rows } = await session.query(
    `select n.nspname, count(c.oid) from pg_namespace n left join pg_class c on c.relnamespace = n.oid and ${READABLE}
      where ${schemaCondition(schemas)} group by n.nspname order by n.nspname`,
  );
  return new Map(rows.map(([name, count]) => [name!, Number(count)]));
}

export async function discoverStreams(
  ctx: ConnectorContext<PostgresSourceConfig>,
  session: PgSession,
  only?: { namespace: string; name: string },
): Promise<StreamSchema[]> {
  // Then only types of the system are written without their schema, whatever the role's search path is.
  // The joins are written in a good order: to find one took three quarters of the query's time for a single table.
  // The statements of one message are a transaction.
  const settings =
    "set local transaction_read_only = on; set local search_path = ''; set local join_collapse_limit = 1";
  const query = columnsQuery(only ? [only.namespace] : ctx.config.schemas, only?.name);
  const { rows } = await session.query(`${settings}; ${query}`);
  const datasets = only ? [] : await datasetStreams(session, ctx.datasets ?? []);
  const logical = ctx.config.replication === 'logical';
  const visible = rows.filter(([, table]) => !isReserved(table!));
  const tables = groupRows(visible, ([schema, table]) => [schema, table]);
  const unlogged = logical && visible.some(isPartitioned) ? await tablesWithUnloggedParts(session) : [];
  const isWhole = ([row]: Row[]) => !unlogged.some(({ namespace, name }) => namespace === row![0] && name === row![1]);
  const found = tables.map((columns) => (logical && isWhole(columns) && loggedStreamOf(columns)) || streamOf(columns));
  if (only && found[0]) found[0].details = await detailsOf(session, only, visible);
  return [...found, ...datasets];
}

const isPartitioned = (row: Row) => row[2] === 'p';

/** Whether the log has all changes of the table. */
export async function hasLog(session: PgSession, table: { namespace: string; name: string }): Promise<boolean> {
  const { rows } = await session.query(
    `select ${IS_LOGGED} from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${literal(table.namespace)} and c.relname = ${literal(table.name)}`,
  );
  const unlogged = await tablesWithUnloggedParts(session);
  return rows[0]?.[0] === 't' && !unlogged.some((one) => Bun.deepEquals(one, table));
}

function streamOf(rows: Row[]): StreamSchema {
  const [namespace, name, kind, description] = rows[0]!;
  return streamOfFields(rows.map(fieldOf), {
    namespace: namespace!,
    name: name!,
    description: description ?? null,
    suggested: kind === 'r' || kind === 'p',
    key: keyOf(rows, 8),
  });
}

const keyOf = (rows: Row[], place: 8 | 10) =>
  rows
    .filter((row) => row[place] !== null)
    .toSorted((a, b) => Number(a[place]) - Number(b[place]))
    .map((row) => row[4]!);

/**
 * A table whose changes are in the log; null: it is read by a cursor. If a table without a replica identity were
 * published, PostgreSQL would reject every UPDATE and DELETE on it. A deferrable key is none. Unlogged tables are not in
 * the log, and rows of tables that inherit from another one are not there as its rows.
 */
function loggedStreamOf(rows: Row[]): StreamSchema | null {
  const [first] = rows;
  const [identity, isLogged, isImmediate] = [first?.[9], first?.[13] === 't', first?.[14] === 't'];
  const key = keyOf(rows, identity === 'i' ? 10 : 8);
  const hasKey = key.length > 0 && ((identity === 'd' && isImmediate) || identity === 'i');
  if (!isLogged || (identity !== 'f' && !hasKey)) return null;
  // The log does not contain generated columns.
  const stream = streamOf(rows.filter((row) => row[11] !== 't'));
  return loggedStream(stream, key);
}

function fieldOf(row: Row): Field {
  const [, , , , name, type, base, notNull, keyPlace, , , , inexact] = row;
  const logical = logicalType(base ?? type!);
  return {
    path: [name!],
    type: logical,
    source_type: type!,
    dialect: DIALECT,
    nullable: notNull !== 't',
    is_primary_key: keyPlace !== null,
    is_cursor_candidate: isOrdered(logical),
    ...(inexact === 't' && { inexact_order: true }),
  };
}
