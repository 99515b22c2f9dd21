import type { ConnectorContext } from '../../contract/connector.ts';
import type { DestinationComparison, Digester, LoadedUpTo, SourceComparison } from '../../contract/digest.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import type { SqlComparison } from '../../kits/sql/digest/sql-digester.ts';
import { fromClause } from '../../kits/sql/request.ts';
import type { PgSession } from '../connection/session.ts';
import type { PostgresDestinationConfig, PostgresSourceConfig } from '../connection/settings.ts';
import { columnList, identifier, literal, postgresNames, relation } from '../connection/sql.ts';
import { conditions, expression } from '../read/select.ts';
import { findTable } from '../write/tables.ts';
import { openDigester } from './digester.ts';

/** The rows that a stream reads, with the filters and masks that the server applies. */
export const digestSource = (
  ctx: ConnectorContext<PostgresSourceConfig>,
  { read, key, columns }: SourceComparison,
): Promise<Digester> =>
  openDigester(ctx, async (session) => ({
    from: fromClause(postgresNames, read),
    sample: await sampleOf(session, read.stream),
    conditions: conditions(read),
    columns: read.columns.map((column) => expression(column, 'binary')),
    compared: columns,
    key,
    changed: () => changedSince(session, read),
  }));

/** Below this number of rows, the pages of a sample would lie too far apart. */
const SAMPLED_ROWS = 1_000_000;
const SAMPLED_PAGES = 50;

/** Undefined: views and queries have no pages, and a small table is read as a whole. */
async function sampleOf(
  session: PgSession,
  { namespace, name, dataset_sql }: SourceComparison['read']['stream'],
): Promise<SqlComparison['sample']> {
  if (dataset_sql !== undefined || namespace === null) return undefined;
  const table = relation(namespace, name);
  const { rows } = await session.query(
    `select relkind in ('r', 'm') and reltuples >= ${SAMPLED_ROWS}
        and not exists (select from pg_inherits where inhparent = c.oid)
       from pg_class c where oid = $1::regclass`,
    { values: [table] },
  );
  if (rows[0]?.[0] !== 't') return undefined;
  return { from: `${table} tablesample system (${100 / SAMPLED_PAGES})`, one_in: SAMPLED_PAGES };
}

/** Whether a row was written after the stream was loaded: its cursor is higher, or the load did not see its version. */
async function changedSince(
  session: PgSession,
  { stream, sync_mode, cursor_field }: SourceComparison['read'],
): Promise<(since: LoadedUpTo) => string | null> {
  if (sync_mode === 'incremental' && cursor_field) {
    const column = identifier(cursor_field[0]!);
    return ({ state }) => (state?.cursor == null ? null : `coalesce(${column} > ${literal(state.cursor)}, false)`);
  }
  if (stream.dataset_sql !== undefined || stream.namespace === null) return () => null;
  const { rows } = await session.query("select relkind in ('r', 'p') from pg_class where oid = $1::regclass", {
    values: [relation(stream.namespace, stream.name)],
  });
  return rows[0]?.[0] === 't' ? ({ snapshot }) => snapshot && isInvisible(snapshot) : () => null;
}

/** `xmin` has 32 bits: those above are of the same epoch as the snapshot, or of the one beside it. */
function isInvisible(snapshot: string): string {
  const seen = `${literal(snapshot)}::txid_snapshot`;
  const next = `txid_snapshot_xmax(${seen})`;
  const distance = `((xmin::text::bigint - ${next} % 4294967296 + 6442450944) % 4294967296 - 2147483648)`;
  return `not txid_visible_in_snapshot(greatest(${next} + ${distance}, 0), ${seen})`;
}

/** The rows of a table that were loaded. @throws ConfigurationError `destination_table_missing` */
export const digestDestination = (
  ctx: ConnectorContext<PostgresDestinationConfig>,
  comparison: DestinationComparison,
): Promise<Digester> =>
  openDigester(ctx, async (session) => {
    await session.query("set local search_path = ''");
    const schema = comparison.schema ?? ctx.config.schema;
    const columns = comparison.columns.map(({ name }) => identifier(name));
    const found = await findTable(session, schema, comparison.table);
    const missing = comparison.columns.filter(({ name }) => !found?.types.has(name)).map(({ name }) => name);
    if (!found || missing.length > 0) {
      const what = found ? `the column ${missing.join(', ')}` : 'the table';
      throw new ConfigurationError(
        'destination_table_missing',
        `The destination does not have ${what} of ${schema}.${comparison.table}. Run the connection first`,
      );
    }
    return {
      from: fromTable(relation(schema, comparison.table), comparison),
      conditions: comparison.rows.kind === 'existing' ? [`${identifier(DELETED_AT)} is null`] : [],
      columns,
      compared: comparison.columns,
      key: comparison.key,
      changed: async () => () => null,
    };
  });

function fromTable(table: string, { rows, columns, key }: DestinationComparison): string {
  if (rows.kind !== 'latest') return table;
  const names = columnList(key.map((index) => columns[index]!.name));
  const order = `${names}, ${identifier(rows.by)} desc nulls last`;
  return `(select distinct on (${names}) * from ${table} order by ${order}) q`;
}
