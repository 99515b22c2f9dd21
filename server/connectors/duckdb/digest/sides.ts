import { DELETED_AT } from '../../contract/changes.ts';
import type { ConnectorContext } from '../../contract/connector.ts';
import type { DestinationComparison, Digester, LoadedUpTo, SourceComparison } from '../../contract/digest.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type SqlComparison, SqlDigester } from '../../kits/sql/digest/sql-digester.ts';
import { fieldByPath, fromClause } from '../../kits/sql/request.ts';
import { sessionOf } from '../connection/engine.ts';
import { duckDbError } from '../connection/failures.ts';
import { existingFile, type FileContext, type Opened, openReader } from '../connection/file-access.ts';
import type { DuckDbDestinationConfig, DuckDbSourceConfig } from '../connection/settings.ts';
import { columnList, duckdbNames, identifier, literal, relation } from '../connection/sql.ts';
import { DIALECT, valueSql } from '../connection/types.ts';
import { asDescribed } from '../read/datasets.ts';
import { windowConditions, withSchema } from '../read/read-rows.ts';
import { findTable } from '../write/tables.ts';
import { dialect, digestColumn, isPortable, maskedColumn, type TypedColumn } from './columns.ts';

interface Side extends Pick<SqlComparison, 'from' | 'conditions' | 'key' | 'changed'> {
  columns: TypedColumn[];
}

/** Nothing can be written to the file until the digester is closed. */
async function openDigester(ctx: FileContext, prepare: (opened: Opened) => Promise<Side>): Promise<Digester> {
  const place = await existingFile(ctx);
  const { connection, engine, close } = await openReader(ctx, place);
  try {
    const { columns, ...side } = await prepare({ connection, place });
    const session = sessionOf(connection, place);
    const sql: SqlComparison = {
      ...side,
      session: { ...session, query: (text) => engine.withMemory(() => session.query(text)), close },
      dialect,
      columns: ({ forms }) => columns.map((column, at) => digestColumn(column, forms[at])),
    };
    return new SqlDigester(sql, {
      dialect: DIALECT,
      types: columns.map((column) => ({ native: null, canonical: isPortable(column) })),
      at: { instant: new Date().toISOString(), position: null },
    });
  } catch (error) {
    await close();
    ctx.signal.throwIfAborted();
    throw duckDbError(error, place);
  }
}

/** The rows that a stream reads. */
export const digestSource = (
  ctx: ConnectorContext<DuckDbSourceConfig>,
  { read, key, columns }: SourceComparison,
): Promise<Digester> =>
  openDigester(ctx, async (opened) => {
    const request = await asDescribed(opened, read);
    return {
      from: fromClause(duckdbNames, withSchema(request)),
      conditions: windowConditions(request),
      columns: request.columns.map(({ field, masking }, at) => ({
        ...maskedColumn({ sql: identifier(field.path[0]!), source_type: field.source_type ?? '' }, masking),
        type: columns[at]!.type,
      })),
      key,
      changed: changedSince(read),
    };
  });

/** A file does not show when a row was written: only a cursor tells what was not loaded yet. */
function changedSince(read: SourceComparison['read']): (since: LoadedUpTo) => string | null {
  const { sync_mode, cursor_field } = read;
  if (sync_mode !== 'incremental' || !cursor_field) return () => null;
  const cursor = fieldByPath(read, cursor_field);
  const column = identifier(cursor.path[0]!);
  return ({ state }) =>
    state?.cursor == null
      ? null
      : `coalesce(${column} > ${valueSql(literal(state.cursor), cursor.source_type ?? '')}, false)`;
}

/** The rows of a table that were loaded. @throws ConfigurationError `destination_table_missing` */
export async function digestDestination(
  ctx: ConnectorContext<DuckDbDestinationConfig>,
  comparison: DestinationComparison,
): Promise<Digester> {
  const schema = comparison.schema ?? ctx.config.schema;
  const missing = (what: string) =>
    new ConfigurationError(
      'destination_table_missing',
      `The destination does not have ${what} of ${schema}.${comparison.table}. Run the connection first`,
    );
  await existingFile(ctx).catch((error: unknown) => {
    throw error instanceof ConfigurationError && error.code === 'file_not_found' ? missing('the file') : error;
  });
  return openDigester(ctx, async ({ connection }) => {
    const found = await findTable(connection, schema, comparison.table);
    if (!found) throw missing('the table');
    const columns = comparison.columns.map(({ name, type }): TypedColumn => {
      const source_type = found.types.get(name.toLowerCase());
      if (source_type === undefined) throw missing(`the column ${name}`);
      return { sql: identifier(name), source_type, type };
    });
    return {
      from: fromTable(relation(schema, comparison.table), comparison),
      conditions: comparison.rows.kind === 'existing' ? [`${identifier(DELETED_AT)} is null`] : [],
      columns,
      key: comparison.key,
      changed: () => null,
    };
  });
}

function fromTable(table: string, { rows, columns, key }: DestinationComparison): string {
  if (rows.kind !== 'latest') return table;
  const names = columnList(key.map((index) => columns[index]!.name));
  const latest = `row_number() over (partition by ${names} order by ${identifier(rows.by)} desc nulls last) = 1`;
  return `(select * from ${table} qualify ${latest}) q`;
}
