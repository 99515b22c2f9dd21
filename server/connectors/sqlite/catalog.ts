import type { Database } from 'bun:sqlite';
import type { Field, LogicalType, StreamSchema } from '../contract/connector.ts';
import { isReserved } from '../contract/reserved-names.ts';
import { countDistinctTexts, DISTINCT_TEXTS, streamOfFields } from '../kits/sql/streams.ts';
import { type Context, identifier } from './database.ts';
import { sqliteError } from './failures.ts';
import { fittingTypes } from './fitting-types.ts';
import { candidatesOf, isCursorType, shownType } from './types.ts';

interface Column {
  name: string;
  declared: string;
  notNull: boolean;
  /** Place in the primary key, from 1; 0: not part of it. */
  key: number;
}
interface Table {
  name: string;
  kind: 'table' | 'view' | 'virtual';
}

/** Tables and views, without SQLite's own and the shadow tables of virtual tables. */
export function tablesOf(database: Database): Table[] {
  const tables = database
    .query(
      `select name, type as kind from pragma_table_list where schema = 'main' and type in ('table', 'view', 'virtual')
         and name not like 'sqlite\\_%' escape '\\' order by name`,
    )
    .all() as Table[];
  return tables.filter(({ name }) => !isReserved(name));
}

/** Whether its rows are stored as they are read. A virtual table computes them, as a view does. */
export const isStoredTable = (database: Database, name: string): boolean =>
  tablesOf(database).some((table) => table.name === name && table.kind === 'table');

/** Whether `describeStream` reads no rows. */
export function isDescribedAtOnce(database: Database, known: StreamSchema): boolean {
  const names = new Set(known.fields.map(({ path }) => path[0]));
  return isStoredTable(database, known.name) && columnsOf(database, known.name).every(({ name }) => names.has(name));
}

export async function discoverStreams(ctx: Context, database: Database): Promise<StreamSchema[]> {
  const streams: StreamSchema[] = [];
  for (const table of tablesOf(database)) {
    try {
      streams.push(await streamOf(ctx, database, table));
    } catch (error) {
      ctx.signal.throwIfAborted();
      // A view on a dropped table, or a virtual table without its module: the others are still readable.
      if (table.kind === 'table') throw error;
      const known = sqliteError(error, ctx.config.path) as Error;
      ctx.log.warn('a view or virtual table cannot be read', { table: table.name, reason: known.message });
    }
  }
  return streams;
}

/**
 * A stream with its present columns. Known columns keep their types, which a read checks every value against, so only
 * new ones require a scan of the table. Null: the table no longer exists.
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
  const inexact = inexactColumns(database, name, columns);
  const fields = columns.map((column) => ({
    ...fieldOf(column, types.get(column.name) as LogicalType),
    ...(inexact.has(column.name) && { inexact_order: true }),
  }));
  const key = columns.filter((column) => column.key > 0).toSorted((a, b) => a.key - b.key);
  return streamOfFields(fields, {
    namespace: null,
    name,
    description: null,
    suggested: kind === 'table',
    key: key.map((column) => column.name),
  });
}

/** `hidden`: 1 is an argument of a virtual table, 2 and 3 are generated columns. */
function columnsOf(database: Database, table: string): Column[] {
  const rows = database
    .query('select name, type, "notnull", pk from pragma_table_xinfo(?) where hidden <> 1 order by cid')
    .values(table) as [string, string, bigint, bigint][];
  return rows.map(([name, declared, notNull, key]) => ({ name, declared, notNull: notNull === 1n, key: Number(key) }));
}

/** Columns with a collation such as NOCASE. A database without collations needs no look at each column. */
function inexactColumns(database: Database, table: string, columns: Column[]): Set<string> {
  const any = database.query("select 1 from sqlite_schema where sql like '%collate%' limit 1").values().length > 0;
  const isInexact = ({ name }: Column) => {
    const [row] = database.query(countDistinctTexts(identifier(table), identifier(name))).values();
    return Number(row?.[0]) < DISTINCT_TEXTS;
  };
  return new Set((any ? columns.filter(isInexact) : []).map(({ name }) => name));
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
