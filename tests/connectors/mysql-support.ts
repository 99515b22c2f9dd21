import { afterAll, beforeAll, describe } from 'bun:test';
import type {
  Cell,
  ConnectorContext,
  ReadRequest,
  StreamSchema,
  StreamState,
} from '../../server/connectors/contract/connector.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import type { MysqlDestinationConfig, MysqlSourceConfig } from '../../server/connectors/mysql/connection/settings.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { limitHangs } from '../support/hangs.ts';
import { type MariaDb, mariaDbMissing, testMariaDb } from '../support/mariadb.ts';
import { contextOf } from './postgres-support.ts';

export { errorOf } from './writing.ts';

/** Skipped with a message if MariaDB is missing. */
export const describeMysql = describe.skipIf(mariaDbMissing !== null);

export interface MysqlSide {
  server: MariaDb;
  database: string;
  /** Runs statements as the administrator, in the database. */
  sql(statements: string): Promise<Record<string, unknown>[]>;
}

/** A database for the tests of one file: read it in tests only. */
export function mysqlDatabase(): MysqlSide {
  limitHangs();
  const side = {} as MysqlSide;
  if (mariaDbMissing) return side;
  beforeAll(async () => {
    side.server = await testMariaDb();
    side.database = await side.server.database();
    side.sql = (statements) => side.server.sql(statements, side.database);
  });
  afterAll(async () => {
    await side.sql(`drop database ${side.database}`);
  });
  return side;
}

const access = ({ server, database }: MysqlSide) => {
  const { host, port, username, password } = server;
  return { host, port, username, password, database, ssl_mode: 'disable' as const };
};
export const sourceConfig = (side: MysqlSide, more: Partial<MysqlSourceConfig> = {}) =>
  contextOf(mysqlSource.config.parse({ ...access(side), ...more }) as MysqlSourceConfig);
export const destinationConfig = (side: MysqlSide, more: Partial<MysqlDestinationConfig> = {}) =>
  contextOf(mysqlDestination.config.parse({ ...access(side), ...more }) as MysqlDestinationConfig);

export async function streamNamed(side: MysqlSide, name: string): Promise<StreamSchema> {
  const streams = await mysqlSource.discover(sourceConfig(side).ctx);
  const stream = streams.find((one) => one.name === name);
  if (!stream) throw new Error(`no stream ${name}`);
  return stream;
}

export async function readAll(ctx: ConnectorContext<MysqlSourceConfig>, request: ReadRequest) {
  const rows: Cell[][] = [];
  let state: StreamState | null = null;
  for await (const batch of mysqlSource.read(ctx, request)) {
    rows.push(...batch.rows);
    state = batch.state ?? state;
  }
  return { rows, state };
}

/** The connections to the database, and what they run. */
export const threads = (side: MysqlSide, command?: string) =>
  side.server
    .sql(`select info from information_schema.processlist where db = '${side.database}'`)
    .then((rows) => rows.filter(({ info }) => command === undefined || String(info).includes(command)).length);
