import type { ConnectorContext, Field } from '../../contract/connector.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import type { DestinationComparison, Digester, LoadedUpTo, SourceComparison } from '../../contract/digest.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type DigestDialect, type SqlComparison, SqlDigester } from '../../kits/sql/digest/sql-digester.ts';
import { fieldByPath, fromClause } from '../../kits/sql/request.ts';
import { MysqlSession } from '../connection/session.ts';
import type { MysqlDestinationConfig, MysqlSourceConfig, ServerSettings } from '../connection/settings.ts';
import { columnList, identifier, literal, mysqlNames, relation } from '../connection/sql.ts';
import { discoverStreams } from '../read/catalog.ts';
import { asDescribed } from '../read/datasets.ts';
import { keepsZeroDates } from '../read/read-rows.ts';
import { beginSnapshot } from '../read/shared-snapshot.ts';
import { columnOf } from '../read/cell-sql.ts';
import { conditions, expression } from '../read/select.ts';
import { canonicalText, digestColumn, isPortable } from './columns.ts';

interface Side extends Pick<SqlComparison, 'from' | 'conditions' | 'key' | 'changed'> {
  columns: { text: string; canonical: boolean }[];
}

async function openDigester(
  ctx: ConnectorContext<ServerSettings>,
  prepare: (session: MysqlSession) => Promise<Side>,
): Promise<Digester> {
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    await beginSnapshot(session);
    const { columns, ...side } = await prepare(session);
    const { rows } = await session.query("select date_format(utc_timestamp(3), '%Y-%m-%dT%H:%i:%s.%f')");
    const digested = columns.map(({ text }) => digestColumn(text));
    return new SqlDigester(
      { ...side, session, dialect, columns: () => digested },
      {
        dialect: null,
        types: columns.map(({ canonical }) => ({ native: null, canonical })),
        at: { instant: `${rows[0]![0]!.slice(0, 23)}Z`, position: null },
      },
    );
  } catch (error) {
    await session.close();
    throw error;
  }
}

const dialect: DigestDialect = {
  hashes(values) {
    const cells = values.map((value) => `coalesce(concat(char_length(${value}), ':', ${value}), '-')`);
    const digest = `md5(concat(${cells.join(', ')}))`;
    return [1, 16].map((from) => `cast(conv(substr(${digest}, ${from}, 15), 16, 10) as unsigned)`);
  },
  oneIn: (rows) => `rand() < ${1 / rows}`,
  bytes: (text) => `cast(${text} as binary)`,
};

/** The rows that a stream reads, with the filters and masks that the server applies. */
export const digestSource = (
  ctx: ConnectorContext<MysqlSourceConfig>,
  { read, key }: SourceComparison,
): Promise<Digester> =>
  openDigester(ctx, async (session) => {
    const request = await asDescribed(session, read);
    const keep = keepsZeroDates(ctx);
    const column = ({ field, masking }: (typeof read.columns)[number]) =>
      masking === 'none'
        ? { text: canonicalText(field, keep), canonical: isPortable(field) }
        : { text: expression({ field, masking }, keep), canonical: true };
    return {
      from: fromClause(mysqlNames, request),
      conditions: conditions(request, keep),
      columns: request.columns.map(column),
      key,
      changed: changedSince(read),
    };
  });

/** MySQL does not show which transaction wrote a row: only a cursor tells what was not loaded yet. */
function changedSince(read: SourceComparison['read']): (since: LoadedUpTo) => string | null {
  const { sync_mode, cursor_field } = read;
  if (sync_mode !== 'incremental' || !cursor_field) return () => null;
  const cursor = columnOf(fieldByPath(read, cursor_field));
  return ({ state }) => (state?.cursor == null ? null : `coalesce(${cursor} > ${literal(state.cursor)}, false)`);
}

/** The rows of a table that were loaded. @throws ConfigurationError `destination_table_missing` */
export const digestDestination = (
  ctx: ConnectorContext<MysqlDestinationConfig>,
  comparison: DestinationComparison,
): Promise<Digester> =>
  openDigester(ctx, async (session) => {
    const schema = comparison.schema ?? ctx.config.database;
    const found = await discoverStreams(session, { database: schema, table: comparison.table, logged: false });
    const stream = found.find(({ name }) => name === comparison.table);
    const fieldOf = (name: string): Field => {
      const field = stream?.fields.find(({ path }) => path[0]!.toLowerCase() === name.toLowerCase());
      if (field) return field;
      const what = stream ? `the column ${name}` : 'the table';
      throw new ConfigurationError(
        'destination_table_missing',
        `The destination does not have ${what} of ${schema}.${comparison.table}. Run the connection first`,
      );
    };
    const fields = comparison.columns.map((column) => ({ ...fieldOf(column.name), type: column.type }));
    return {
      from: fromTable(relation(schema, comparison.table), comparison),
      conditions: comparison.rows.kind === 'existing' ? [`${identifier(DELETED_AT)} is null`] : [],
      columns: fields.map((field) => ({ text: canonicalText(field, true), canonical: isPortable(field) })),
      key: comparison.key,
      changed: () => null,
    };
  });

function fromTable(table: string, { rows, columns, key }: DestinationComparison): string {
  if (rows.kind !== 'latest') return table;
  const names = columnList(key.map((index) => columns[index]!.name));
  const numbered = `select t.*, row_number() over (partition by ${names} order by ${identifier(rows.by)} desc) as _latest`;
  return `(select * from (${numbered} from ${table} t) n where _latest = 1) q`;
}
