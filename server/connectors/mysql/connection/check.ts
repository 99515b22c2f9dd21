import type { CheckResult, ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type MysqlSession, withSession } from './session.ts';
import type { ServerSettings } from './settings.ts';

/** Older ones lack what the statements here rely on (window functions, CAST to FLOAT, exact collations). */
const OLDEST = { MySQL: [800, '8.0'], MariaDB: [1005, '10.5'] } as const;

/** Being here means that host, database and password are right. */
export function serverCheck({ version }: MysqlSession): CheckResult['checks'] {
  const { flavor, text } = version;
  const [oldest, name] = OLDEST[flavor];
  if (version.number < oldest) {
    throw new ConfigurationError('server_too_old', `${flavor} ${text} is too old: ${name} is the oldest that works`);
  }
  return [{ title: 'Connection', status: 'passed', message: `${flavor} ${text}` }];
}

/** The databases that the user may see. */
export async function databases(ctx: ConnectorContext<ServerSettings>): Promise<Record<string, string>> {
  return withSession(ctx, { phase: 'setup', database: null }, async (session) => {
    const { rows } = await session.query(
      `select schema_name from information_schema.schemata
        where schema_name not in ('information_schema', 'performance_schema', 'mysql', 'sys') order by schema_name`,
    );
    return Object.fromEntries(rows.map(([name]) => [name!, name!]));
  });
}
