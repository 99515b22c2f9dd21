import type { CheckResult, ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type PgSession, withSession } from './session.ts';
import type { ServerSettings } from './settings.ts';

/** Older ones lack what the statements here rely on (trim_scale of 13, partitions, generated columns). */
const OLDEST = 130_000;

/** Being here means that host, database and password are right. */
export async function serverCheck(session: PgSession): Promise<CheckResult['checks']> {
  const { rows } = await session.query(
    "select current_setting('server_version_num'), current_setting('server_version')",
  );
  const [[number, version] = ['0', '']] = rows;
  if (Number(number) < OLDEST) {
    throw new ConfigurationError('server_too_old', `PostgreSQL ${version} is too old: 13 is the oldest that works`);
  }
  return [{ title: 'Connection', status: 'passed', message: `PostgreSQL ${version}` }];
}

/** The databases of the server; reached through the one in the settings or, while that is wrong, the usual one. */
export async function databases(ctx: ConnectorContext<ServerSettings>): Promise<Record<string, string>> {
  const list = (session: PgSession) =>
    session.query(
      `select datname from pg_database where datallowconn and not datistemplate
          and has_database_privilege(oid, 'connect') order by datname`,
    );
  const asked = withSession(ctx, { phase: 'setup' }, list);
  const { rows } = await asked.catch((error: unknown) => {
    if (!(error instanceof ConfigurationError) || error.code !== 'database_not_found') throw error;
    return withSession(ctx, { phase: 'setup', database: 'postgres' }, list);
  });
  return Object.fromEntries(rows.map(([name]) => [name!, name!]));
}
