import type { ConnectorContext } from '../../contract/connector.ts';
import type { ComparedColumn, Digester, LoadedUpTo } from '../../contract/digest.ts';
import { type DigestDialect, type SqlComparison, SqlDigester } from '../../kits/sql/digest/sql-digester.ts';
import { PgSession } from '../connection/session.ts';
import type { ServerSettings } from '../connection/settings.ts';
import { DIALECT } from '../connection/types.ts';
import { BEGIN } from '../read/shared-snapshot.ts';
import { classOf, digestColumns, isPortable, type TypedExpression } from './columns.ts';

type Context = ConnectorContext<ServerSettings>;

export interface PgComparison extends Pick<SqlComparison, 'from' | 'conditions' | 'key' | 'sample'> {
  /** The columns as SQL. */
  columns: string[];
  compared: ComparedColumn[];
  changed(session: PgSession): Promise<(since: LoadedUpTo) => string | null>;
}

/** The planner takes each key for a group, and would sort all of them: thousands of groups fit in memory. */
const FEW_GROUPS = 'set local enable_sort = off';

/** Opens the snapshot. The session sees no changes until it is closed. */
export async function openDigester(
  ctx: Context,
  prepare: (session: PgSession) => Promise<PgComparison>,
): Promise<Digester> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    // Compiling a tree of thousands of comparisons takes longer than it saves.
    await session.query(`${BEGIN}; set local jit = off; ${FEW_GROUPS}`);
    const { columns, changed, compared, ...comparison } = await prepare(session);
    const typed = await typesOf(session, { columns, from: comparison.from });
    const sql: SqlComparison = {
      ...comparison,
      session,
      dialect,
      columns: (plan) => digestColumns(typed, compared, plan),
      changed: await changed(session),
    };
    const { hasRowHash, ...at } = await moment(session);
    return new SqlDigester(sql, {
      dialect: hasRowHash ? DIALECT : null,
      types: typed.map(({ type }) => ({ native: classOf(type), canonical: isPortable(type) })),
      at,
    });
  } catch (error) {
    await session.close();
    throw error;
  }
}

const dialect: DigestDialect = {
  hashes: (values, { hash }) =>
    hash === 'native'
      ? // Hashed as a whole, since the sum would not change if two rows swap a value: as a seed, of which all 64 bits count.
        [`hashint4extended(0, ${values.join(' # ')})`]
      : md5Hashes(values),
  oneIn: (rows) => `random() < ${1 / rows}`,
  bytes: (text) => `${text} collate "C"`,
  // It knows nothing of the columns of a union. Otherwise it takes each row for a group, and parallel workers send all rows
  // to the process that adds them up, which takes half as much again, instead of their sums.
  inFewGroups: (rows, empty) => `${rows} union all ${empty}`,
};

/** Two numbers of 60 bits out of the MD5 of the values with their lengths. */
function md5Hashes(values: readonly string[]): string[] {
  const cells = values.map((value) => `coalesce(char_length(${value}) || ':' || ${value}, '-')`);
  const digest = `md5(convert_to(${cells.join(' || ')}, 'UTF8'))`;
  return [1, 16].map((from) => `('x' || substr(${digest}, ${from}, 15))::bit(60)::bigint`);
}

async function typesOf(
  session: PgSession,
  { columns, from }: { columns: string[]; from: string },
): Promise<TypedExpression[]> {
  const described = await session.describe(`select ${columns.join(', ')} from ${from} limit 0`);
  const oids = described.map(({ type }) => type).join(', ');
  const { rows } = await session.query(
    `select format_type(o, null) from unnest(array[${oids}]::oid[]) with ordinality u (o, n) order by n`,
  );
  return columns.map((sql, index) => ({ sql, type: rows[index]![0]! }));
}

async function moment(session: PgSession) {
  const { rows } = await session.query(
    `select to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end)::text,
            current_setting('server_version_num')::int >= 140000`,
  );
  const [[instant, position, hasRowHash] = []] = rows;
  return { instant: instant!, position: position ?? null, hasRowHash: hasRowHash === 't' };
}
