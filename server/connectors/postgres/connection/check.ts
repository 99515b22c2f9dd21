import type { CheckResult, ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type PgSession, withSession } from './session.ts';
import type { ServerSettings } from './settings.ts';

/** Older servers lack features that the statements rely on (trim_scale of 13, partitions, generated columns). */
const MIN_VERSION = 130_000;

/** An open session proves that host, database and password are correct. */
export async function serverCheck(session: PgSession): Promise<CheckResult['checks']> {
  const { rows } = await session.query(
    "select current_setting('server_version_num'), current_setting('server_version')",
  );
  const [[number, version] = ['0', '']] = rows;
  if (Number(number) < MIN_VERSION) {
    throw new ConfigurationError('server_too_old', `PostgreSQL ${version} is too old. Version 13 or later is required`);
  }
  return [{ title: 'Connection', status: 'passed', message: `PostgreSQL ${version}` }];
}

/** Lists the server's databases. Connects to `postgres` if the configured database does not exist. */
export async function databases(ctx: ConnectorContext<ServerSettings>): Promise<Record<string, string>> {
  const list = (session: PgSession) =>
    session.query(
      `select datname from pg_database where datallowconn and not datistemplate
          and has_database_privilege(oid, 'connect') order by datname`,
    );
  const listed = withSession(ctx, { phase: 'setup' }, list);
  const { rows } = await listed.catch((error: unknown) => {
    if (!(error instanceof ConfigurationError) || error.code !== 'database_not_found') throw error;
    return withSession(ctx, { phase: 'setup', database: 'postgres' }, list);
  });
  return Object.fromEntries(rows.map(([name]) => [name!, name!]));
}
