import type { CheckResult, ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { fixOf } from '../../contract/fixes.ts';
import { MysqlSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';
import { findUnlogged } from '../read/catalog.ts';
import type { BinlogStream } from '../connection/binlog-stream.ts';
import { EventDecoder } from './events.ts';
import { parsePosition, type Position, positionText } from './gtid.ts';
import { RESET_HINT } from './reset-hint.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** A server without changes sends a heartbeat this often, which shows that the connection is alive. */
const HEARTBEAT_NS = 1_000_000_000;
const RIGHTS = 'REPLICATION SLAVE, BINLOG MONITOR';
/** Ids that administrators assign are small. */
const LOWEST_SERVER_ID = 0x80000000;

const REQUIRED: Record<string, string> = {
  binlog_format: 'ROW',
  binlog_row_image: 'FULL',
  binlog_row_metadata: 'FULL',
};

/** @throws ConfigurationError unless the server is a MariaDB */
export function assertMariaDb({ version }: MysqlSession): void {
  if (version.flavor === 'MariaDB') return;
  throw new ConfigurationError(
    'cdc_unsupported_server',
    `Change data capture reads the binary log of MariaDB 10.5 or later, and this is MySQL ${version.text}. Set the incremental reads to a cursor column`,
  );
}

/** @throws ConfigurationError unless the log has every change of the database, row by row, with all columns */
export async function assertLogged(session: MysqlSession, database: string): Promise<void> {
  const [problem] = await problemsOf(session, database);
  if (problem)
    throw new ConfigurationError(problem.code, `${problem.message}. ${problem.statements.join('; ')}`.trim());
}

interface Problem {
  code: string;
  message: string;
  statements: string[];
}

async function problemsOf(session: MysqlSession, database: string): Promise<Problem[]> {
  assertMariaDb(session);
  const names = ['log_bin', 'log_slave_updates', 'wsrep_on', 'gtid_slave_pos', ...Object.keys(REQUIRED)];
  const { rows } = await session.query(
    `show global variables where variable_name in (${names.map(literal).join(', ')})`,
  );
  const values = new Map(rows.map(([name, value]) => [name!, value ?? '']));
  const problem = (code: string, message: string, ...statements: string[]) => ({ code, message, statements });
  if (values.get('log_bin') !== 'ON') {
    return [problem('binlog_disabled', 'The server writes no binary log. Start it with log_bin')];
  }
  if (values.get('wsrep_on') === 'ON') {
    return [problem('cdc_unsupported_server', 'The binary log of a Galera cluster is not supported')];
  }
  const found: Problem[] = [];
  for (const [name, required] of Object.entries(REQUIRED)) {
    if (values.get(name) === required) continue;
    const message = `${name} is ${values.get(name)}, and the log lacks changes unless it is ${required}. Sessions that are open keep the old value`;
    found.push(problem(`${name}_not_${required.toLowerCase()}`, message, `SET GLOBAL ${name} = ${required}`));
  }
  if (values.get('gtid_slave_pos') && values.get('log_slave_updates') !== 'ON') {
    const message = 'The server is a replica that does not log what it replicates. Start it with log_slave_updates';
    found.push(problem('binlog_incomplete', message));
  }
  const filtered = await filterOf(session, database);
  if (filtered) found.push(problem('binlog_incomplete', filtered));
  return found;
}

/** Null: the changes of the database are logged. */
async function filterOf(session: MysqlSession, database: string): Promise<string | null> {
  const { rows } = await session.query('show master status').catch((error: unknown) => {
    throw withGrant(error);
  });
  const [, , only = '', without = ''] = rows[0] ?? [];
  const listed = (names: string | null) => (names ?? '').split(',').includes(database);
  if ((!only || listed(only)) && !listed(without)) return null;
  return `The server does not log changes of ${database} (binlog_do_db, binlog_ignore_db)`;
}

/** Names the privilege that is missing. */
export function withGrant(error: unknown): unknown {
  if (!(error instanceof ConnectorError) || error.code !== 'permission_denied') return error;
  return new ConfigurationError(
    'replication_not_permitted',
    `The user cannot read the binary log. Run GRANT ${RIGHTS} ON *.* TO the user. ${error.message}`,
  );
}

export async function logCheck(ctx: Context, session: MysqlSession): Promise<CheckResult['checks']> {
  if (ctx.config.replication !== 'logical') return [];
  const title = 'Binary log';
  try {
    const problems = await problemsOf(session, ctx.config.database);
    if (problems.length === 0) {
      await tryLog(ctx, session);
      return [{ title, status: 'passed', message: await unloggedText(session, ctx.config.database) }];
    }
    const statements = problems.flatMap((one) => one.statements);
    const message = problems.map((one) => one.message).join('. ');
    const fix = 'Change the settings of the server, by its configuration or the statements, then test again.';
    return [{ title, status: 'failed', message, fix, ...(statements.length > 0 && { statements }) }];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const { rows } = await session.query('select current_user()');
    const [user = '', host = ''] = (rows[0]?.[0] ?? '').split('@');
    const statements = [`GRANT ${RIGHTS} ON *.* TO ${literal(user)}@${literal(host)}`];
    const isDenied = error.code === 'replication_not_permitted';
    return [{ title, status: 'failed', message: error.message, ...fixOf(error), ...(isDenied && { statements }) }];
  }
}

async function unloggedText(session: MysqlSession, database: string): Promise<string | null> {
  const unlogged = await findUnlogged(session, database);
  const tables = Array.from(unlogged, ([name, reason]) => `${name} (${reason})`).filter(
    (text) => !/\(it is a view\)/.test(text),
  );
  if (tables.length === 0) return null;
  const more = tables.length > 5 ? ` and ${tables.length - 5} more` : '';
  return `Not read from the log, but by a cursor or in full: ${tables.slice(0, 5).join(', ')}${more}`;
}

/** Opens the log at its end, which needs the privilege. */
async function tryLog(ctx: Context, session: MysqlSession): Promise<void> {
  const log = await openLog(ctx, await currentPosition(session));
  try {
    await log.stream.next();
  } catch (error) {
    throw lostError(log.session.translate(error));
  } finally {
    await closeLog(log);
  }
}

/** The last transaction of each domain in the log. */
export async function currentPosition(session: MysqlSession): Promise<Position> {
  const { rows } = await session.query('select @@global.gtid_binlog_pos');
  return positionOf(rows[0]?.[0] ?? '');
}

/** @throws ConfigurationError for a log without transactions, since nothing would show that it was purged */
export function positionOf(text: string): Position {
  const position = parsePosition(text);
  if (position && position.size > 0) return position;
  throw new ConfigurationError(
    'binlog_empty',
    'The binary log has no transaction with a GTID yet. Change a row in any table of the server, and try again',
  );
}

/** From where on the server still has its log. */
export async function oldestPosition(session: MysqlSession): Promise<Position> {
  const { rows } = await session.query('show binary logs').catch((error: unknown) => {
    throw withGrant(error);
  });
  const [file = ''] = rows[0] ?? [];
  const found = await session.query(`select binlog_gtid_pos(${literal(file ?? '')}, 4)`, { slow: true });
  return parsePosition(found.rows[0]?.[0] ?? '') ?? new Map();
}

export interface OpenLog {
  session: MysqlSession;
  stream: BinlogStream;
  decoder: EventDecoder;
}

/** Opens the log after a position. Each reader has an id of its own, since the server ends the older of two equal ones. */
export async function openLog(ctx: Context, from: Position): Promise<OpenLog> {
  const session = await MysqlSession.open(ctx, { phase: 'run', database: null });
  try {
    const { rows } = await session.query('select @@global.binlog_checksum');
    const checksum = rows[0]?.[0] ?? 'NONE';
    await session.query(
      `set @master_binlog_checksum = ${literal(checksum)}, @mariadb_slave_capability = 4,
         @master_heartbeat_period = ${HEARTBEAT_NS}, @slave_connect_state = ${literal(positionText(from))},
         @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0`,
    );
    await session.query('set max_statement_time = 0');
    const id = LOWEST_SERVER_ID + Math.floor(Math.random() * (LOWEST_SERVER_ID - 1));
    return { session, stream: session.binlog(id), decoder: new EventDecoder(checksum !== 'NONE') };
  } catch (error) {
    await session.close();
    throw error;
  }
}

export async function closeLog({ session, stream }: OpenLog): Promise<void> {
  session.endBinlog();
  stream.end();
  await session.close();
}

/** Rewrites what the server says of a log that does not continue from the position. */
export function lostError(error: unknown): unknown {
  if (!(error instanceof ConnectorError)) return error;
  const { message } = error;
  if (/have been purged|Could not find (first log file|GTID state)/i.test(message)) return purgedError('');
  if (/not in the master's binlog|is missing the GTID|does not exist in the binlog/i.test(message)) {
    return new ConfigurationError(
      'source_went_back',
      `The server does not have the transactions that were read before: it was set back, or is another one. ${RESET_HINT}. ${message}`,
    );
  }
  if (/same server_(uu)?id/i.test(message)) return new RetryableError('connection_lost', message);
  return withGrant(error);
}

export const purgedError = (position: string) =>
  new ConfigurationError(
    'binlog_purged',
    `The server has removed the binary log after ${position || 'the position of the stream'} (binlog_expire_logs_seconds, PURGE BINARY LOGS). ${RESET_HINT}`,
  );
