import type { ConnectorContext, Field, StreamSchema } from '../define.ts';
import { datasetStreams } from './datasets.ts';
import type { PgSession, Row } from './session.ts';
import type { PostgresSourceConfig } from './settings.ts';
import { literal } from './sql.ts';
import { DATES, DIALECT, isCursorType, logicalType } from './types.ts';

/** Schemas that a user would want to read. */
export const USER_SCHEMAS = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'";

const schemaCondition = (schemas: string[]) =>
  schemas.length ? `n.nspname in (${schemas.map(literal).join(', ')})` : USER_SCHEMAS;

/**
 * Relations that can be read: tables, partitioned tables (as a whole), views, materialized views, foreign tables.
 * Not what belongs to an extension.
 */
const READABLE = `c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and has_schema_privilege(n.oid, 'usage') and has_any_column_privilege(c.oid, 'select')
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`;

/** One row a column: schema, table, kind, comment, column, type, base type, not null, place in the primary key. */
const columnsQuery = (schemas: string[]) => `
  select n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), a.attname,
         format_type(a.atttypid, a.atttypmod),
         case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end,
         a.attnotnull, array_position(i.indkey::int2[], a.attnum)
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_index i on i.indrelid = c.oid and i.indisprimary
   where ${schemaCondition(schemas)} and ${READABLE} and has_column_privilege(c.oid, a.attnum, 'select')
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
): Promise<StreamSchema[]> {
  // Only types of the system are then written without their schema, whatever the role's search path is.
  await session.query("begin read only; set local search_path = ''");
  const { rows } = await session.query(columnsQuery(ctx.config.schemas));
  await session.query('commit');
  const datasets = await datasetStreams(session, ctx.datasets ?? []);
  const streams = new Map<string, Row[]>();
  for (const row of rows) {
    const key = JSON.stringify([row[0], row[1]]);
    const known = streams.get(key);
    if (known) known.push(row);
    else streams.set(key, [row]);
  }
  return [...Array.from(streams.values(), streamOf), ...datasets];
}

function streamOf(rows: Row[]): StreamSchema {
  const [namespace, name, kind, description] = rows[0]!;
  const fields = rows.map(fieldOf);
  const key = rows
    .filter((row) => row[8] !== null)
    .toSorted((a, b) => Number(a[8]) - Number(b[8]))
    .map((row) => [row[4]!]);
  const cursors = fields.filter((field) => field.is_cursor_candidate);
  const usual = cursors.find(
    (field) => DATES.has(field.type) && /^(updated|modified|last_modified|changed)_?(at|on)?$/i.test(field.path[0]!),
  );
  return {
    namespace: namespace!,
    name: name!,
    description: description ?? null,
    fields,
    supported_sync_modes: ['full_refresh', 'incremental'],
    source_defined_cursor: false,
    default_cursor_field: usual?.path ?? null,
    source_defined_primary_key: key.length ? key : null,
    is_resumable: cursors.length > 0,
    supports_date_window: cursors.some((field) => DATES.has(field.type)),
    suggested: kind === 'r' || kind === 'p',
  };
}

function fieldOf(row: Row): Field {
  const [, , , , name, type, base, notNull, keyPlace] = row;
  const logical = logicalType(base ?? type!);
  return {
    path: [name!],
    type: logical,
    source_type: type!,
    dialect: DIALECT,
    nullable: notNull !== 't',
    is_primary_key: keyPlace !== null,
    is_cursor_candidate: isCursorType(logical),
  };
}
