import type { Database } from 'bun:sqlite';
import type { Field, LogicalType, StreamSchema } from '../contract/connector.ts';
import { type Context, identifier } from './database.ts';
import { sqliteError } from './failures.ts';
import { fittingTypes } from './fitting-types.ts';
import { candidatesOf, isCursorType, isDate, shownType } from './types.ts';

interface Column {
  name: string;
  declared: string;
  notNull: boolean;
  /** Place in the primary key, from 1; 0: none. */
  key: number;
}
interface Table {
  name: string;
  kind: 'table' | 'view' | 'virtual';
}

/** Tables and views, without SQLite's own and those that virtual tables keep their data in. */
export function tablesOf(database: Database): Table[] {
  return database
    .query(
      `select name, type as kind from pragma_table_list where schema = 'main' and type in ('table', 'view', 'virtual')
         and name not like 'sqlite\\_%' escape '\\' order by name`,
    )
    .all() as Table[];
}

export async function discoverStreams(ctx: Context, database: Database): Promise<StreamSchema[]> {
  const streams: StreamSchema[] = [];
  for (const table of tablesOf(database)) {
    try {
      streams.push(await streamOf(ctx, database, table));
    } catch (error) {
      ctx.signal.throwIfAborted();
      // A view on a table that is gone, a virtual table without its module: the others can still be read.
      if (table.kind === 'table') throw error;
      const known = sqliteError(error, ctx.config.path) as Error;
      ctx.log.warn('a view or virtual table cannot be read', { table: table.name, reason: known.message });
    }
  }
  return streams;
}

/**
 * A stream with the columns that it has now. Those that are known keep their types, which a read holds every value to:
 * the table is looked through only for others. Null: it is gone.
 */
export async function describeStream(ctx: Context, database: Database, known: StreamSchema) {
  const table = tablesOf(database).find(({ name }) => name === known.name);
  return table ? streamOf(ctx, database, { ...table, known: known.fields }) : null;
}

async function streamOf(
  ctx: Context,
  database: Database,
  { name, kind, known = [] }: Table & { known?: Field[] },
): Promise<StreamSchema> {
  const columns = columnsOf(database, name);
  const types = new Map(known.map(({ path, type }) => [path[0], type]));
  const added = columns.filter((column) => !types.has(column.name));
  const typed = added.map((column) => ({ ...column, candidates: candidatesOf(column.declared) }));
  const found =
    added.length > 0 ? await fittingTypes(ctx, database, { from: `${identifier(name)} t`, columns: typed }) : [];
  for (const [at, column] of added.entries()) types.set(column.name, found[at] as LogicalType);
  const fields = columns.map((column) => fieldOf(column, types.get(column.name) as LogicalType));
  const key = columns.filter((column) => column.key > 0).toSorted((a, b) => a.key - b.key);
  const cursors = fields.filter((field) => field.is_cursor_candidate);
  const usual = cursors.find(
    ({ path, type }) => isDate(type) && /^(updated|modified|last_modified|changed)_?(at|on)?$/i.test(path[0] ?? ''),
  );
  return {
    namespace: null,
    name,
    description: null,
    fields,
    supported_sync_modes: ['full_refresh', 'incremental'],
    source_defined_cursor: false,
    default_cursor_field: usual?.path ?? null,
    source_defined_primary_key: key.length > 0 ? key.map((column) => [column.name]) : null,
    is_resumable: cursors.length > 0,
    supports_date_window: cursors.some(({ type }) => isDate(type)),
    suggested: kind === 'table',
  };
}

/** `hidden`: 1 are the arguments of virtual tables, 2 and 3 generated columns. */
function columnsOf(database: Database, table: string): Column[] {
  const rows = database
    .query('select name, type, "notnull", pk from pragma_table_xinfo(?) where hidden <> 1 order by cid')
    .values(table) as [string, string, bigint, bigint][];
  return rows.map(([name, declared, notNull, key]) => ({ name, declared, notNull: notNull === 1n, key: Number(key) }));
}

const fieldOf = ({ name, declared, notNull, key }: Column, type: LogicalType): Field => ({
  path: [name],
  type,
  source_type: shownType(declared, type),
  dialect: 'sqlite',
  nullable: !notNull && key === 0,
  is_primary_key: key > 0,
  is_cursor_candidate: isCursorType(type, declared),
});
