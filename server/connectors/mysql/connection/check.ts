import type { CheckResult, ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type MysqlSession, withSession } from './session.ts';
import type { ServerSettings } from './settings.ts';

/** Older servers lack features that the statements rely on (window functions, CAST to FLOAT, exact collations). */
const OLDEST = { MySQL: [800, '8.0'], MariaDB: [1005, '10.5'] } as const;

/** An open session proves that host, database and password are correct. */
export function serverCheck({ version }: MysqlSession): CheckResult['checks'] {
  const { flavor, text } = version;
  const [oldest, name] = OLDEST[flavor];
  if (version.number < oldest) {
    throw new ConfigurationError('server_too_old', `${flavor} ${text} is too old. ${name} or later is required`);
  }
  return [{ title: 'Connection', status: 'passed', message: `${flavor} ${text}` }];
}

/** Lists the databases that are visible to the user. */
export async function databases(ctx: ConnectorContext<ServerSettings>): Promise<Record<string, string>> {
  return withSession(ctx, { phase: 'setup', database: null }, async (session) => {
    const { rows } = await session.query(
      `select schema_name from information_schema.schemata
        where schema_name not in ('information_schema', 'performance_schema', 'mysql', 'sys') order by schema_name`,
    );
    return Object.fromEntries(rows.map(([name]) => [name!, name!]));
  });
}
