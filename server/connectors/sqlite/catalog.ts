import type { Database } from 'bun:sqlite';
import type { Field, LogicalType, StreamSchema } from '../define.ts';
import { breathe, type Context, identifier } from './database.ts';
import { sqliteError } from './failures.ts';
import { candidatesOf, isCursorType, isDate, isUndeclared, shownType } from './types.ts';

/** Of an integer that SQLite shifts bits in. */
const BITS = 60;
const TURN_ROWS = 5_000;

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

async function streamOf(ctx: Context, database: Database, { name, kind }: Table): Promise<StreamSchema> {
  const columns = columnsOf(database, name);
  const types = await fittingTypes(ctx, database, { table: name, columns });
  const fields = columns.map((column, at) => fieldOf(column, types[at] as LogicalType));
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

/** Reads the whole table once: one bit for each type that a column might have and one value does not. */
async function fittingTypes(
  ctx: Context,
  database: Database,
  { table, columns }: { table: string; columns: Column[] },
): Promise<LogicalType[]> {
  const checks = columns.flatMap(({ name, declared }, at) => {
    const column = `t.${identifier(name)}`;
    const found = candidatesOf(declared).map(({ misfit }, rank) => ({ at, rank, sql: misfit(column) }));
    // Nothing is known of a column without a type and without values.
    return isUndeclared(declared) ? [...found, { at, rank: -1, sql: 'true' }] : found;
  });
  const words = Array.from({ length: Math.ceil(checks.length / BITS) }, (_, word) =>
    checks.slice(word * BITS, (word + 1) * BITS).map(({ at, sql }, bit) => {
      const column = `t.${identifier((columns[at] as Column).name)}`;
      return `((${column} is not null and ${sql}) << ${bit})`;
    }),
  );
  const seen = words.map(() => 0n);
  const select = words.map((word, at) => `${word.join(' | ')} as w${at}`).join(', ') || '1 as w0';
  let rows = 0;
  const statement = database.prepare<Record<string, bigint>, []>(`select ${select} from ${identifier(table)} t`);
  for (const row of statement.iterate()) {
    for (let word = 0; word < seen.length; word++) seen[word] = (seen[word] as bigint) | (row[`w${word}`] as bigint);
    rows += 1;
    if (rows % TURN_ROWS > 0) continue;
    await breathe();
    ctx.signal.throwIfAborted();
  }
  const isSet = (check: number) => (((seen[Math.floor(check / BITS)] as bigint) >> BigInt(check % BITS)) & 1n) === 1n;
  return columns.map(({ declared }, at) => {
    const own = checks.flatMap((check, index) => (check.at === at ? [{ ...check, set: isSet(index) }] : []));
    if (own.some(({ rank, set }) => rank === -1 && !set)) return 'string';
    const fit = own.find(({ rank, set }) => rank >= 0 && !set);
    return fit ? (candidatesOf(declared)[fit.rank]?.type ?? 'string') : 'string';
  });
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
