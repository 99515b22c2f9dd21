import type { CheckResult, ConnectorContext } from '../../contract/connector.ts';
import { CannotContinueError, ConfigurationError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { fixOf } from '../../contract/fixes.ts';
import { MysqlSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';
import { findUnlogged } from '../read/catalog.ts';
import type { BinlogStream } from '../connection/binlog-stream.ts';
import { EventDecoder } from './events.ts';
import { parsePosition, type Position } from './gtid.ts';
import { logFlavorOf } from './log-flavor.ts';
import { RESET_HINT } from './reset-hint.ts';
import type { Row } from '../connection/result.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** Where a file of the server's log is, to measure what has not been read yet. */
export interface LogFile {
  name: string;
  position: number;
}

/** Ids that administrators assign are small. */
const LOWEST_SERVER_ID = 0x80000000;

/** @throws ConfigurationError unless the log has every change of the database, row by row, with all columns */
export async function assertLogged(session: MysqlSession, database: string): Promise<void> {
  const [problem] = await problemsOf(session, database);
  if (problem)
    throw new ConfigurationError(problem.code, `${problem.message}. ${problem.statements.join('; ')}`.trim());
}

/** By the older name and the newer one. */
const UPDATES = ['log_slave_updates', 'log_replica_updates'];

interface Problem {
  code: string;
  message: string;
  statements: string[];
}

async function problemsOf(session: MysqlSession, database: string): Promise<Problem[]> {
  const { required: needed } = logFlavorOf(session);
  const names = ['log_bin', 'wsrep_on', 'gtid_slave_pos', ...UPDATES, ...Object.keys(needed)];
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
  for (const [name, required] of Object.entries(needed)) {
    // Versions that lack one of them write what it asks for.
    if ((values.get(name) ?? required) === required) continue;
    const message = `${name} is ${values.get(name)}, and the log lacks changes unless it is ${required || 'empty'}. Sessions that are open keep the old value`;
    const code = `${name}_not_${required.toLowerCase() || 'empty'}`;
    found.push(problem(code, message, `SET GLOBAL ${name} = ${required || "''"}`));
  }
  const logsUpdates = UPDATES.some((name) => values.get(name) === 'ON');
  if ((values.get('gtid_slave_pos') || session.version.flavor === 'MySQL') && !logsUpdates) {
    const message = 'The server is a replica that does not log what it replicates. Start it with log_slave_updates';
    found.push(problem('binlog_incomplete', message));
  }
  const filtered = await filterOf(session, database);
  if (filtered) found.push(problem('binlog_incomplete', filtered));
  return found;
}

/** MySQL 8.2 renamed the statement. */
const FIRST_BINARY_LOG_STATUS = 802;

async function logStatus(session: MysqlSession): Promise<Row> {
  const isNew = session.version.flavor === 'MySQL' && session.version.number >= FIRST_BINARY_LOG_STATUS;
  const { rows } = await session
    .query(isNew ? 'show binary log status' : 'show master status')
    .catch((error: unknown) => {
      throw withGrant(session, error);
    });
  return rows[0] ?? [];
}

/** Where the log ends. */
export async function currentFile(session: MysqlSession): Promise<LogFile> {
  const [name, position] = await logStatus(session);
  return { name: name ?? '', position: Number(position) };
}

/** Null: the changes of the database are logged. */
async function filterOf(session: MysqlSession, database: string): Promise<string | null> {
  const [, , only = '', without = ''] = await logStatus(session);
  const listed = (names: string | null) => (names ?? '').split(',').includes(database);
  if ((!only || listed(only)) && !listed(without)) return null;
  return `The server does not log changes of ${database} (binlog_do_db, binlog_ignore_db)`;
}

/** Names the privilege that is missing. */
export function withGrant(session: MysqlSession, error: unknown): unknown {
  if (!(error instanceof ConnectorError) || error.code !== 'permission_denied') return error;
  return new ConfigurationError(
    'replication_not_permitted',
    `The user cannot read the binary log. Run GRANT ${logFlavorOf(session).rights} ON *.* TO the user. ${error.message}`,
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
    const statements = [`GRANT ${logFlavorOf(session).rights} ON *.* TO ${literal(user)}@${literal(host)}`];
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
    throw lostError(log.session, error);
  } finally {
    await closeLog(log);
  }
}

/** The last transaction of each domain in the log. */
export async function currentPosition(session: MysqlSession): Promise<Position> {
  return known(await logFlavorOf(session).current(session));
}

/** @throws ConfigurationError for a log without transactions, since nothing would show that it was purged */
export function positionOf(text: string): Position {
  return known(parsePosition(text) ?? new Map());
}

function known(position: Position): Position {
  if (position.size > 0) return position;
  throw new ConfigurationError(
    'binlog_empty',
    'The binary log has no transaction with a GTID yet. Change a row in any table of the server, and try again',
  );
}

/** From where on the server still has its log. */
export async function oldestPosition(session: MysqlSession): Promise<Position> {
  return logFlavorOf(session)
    .oldest(session)
    .catch((error: unknown) => {
      throw withGrant(session, error);
    });
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
    const set = await logFlavorOf(session).prepare(session, from, checksum);
    const id = LOWEST_SERVER_ID + Math.floor(Math.random() * (LOWEST_SERVER_ID - 1));
    return { session, stream: session.binlog(id, set), decoder: new EventDecoder(checksum !== 'NONE') };
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
export function lostError(session: MysqlSession, thrown: unknown): unknown {
  const error = session.translate(thrown);
  if (!(error instanceof ConnectorError)) return error;
  const { message } = error;
  if (
    /have been purged|purged required binary logs|purged binary logs containing GTIDs|Could not find (first log file|GTID state)/i.test(
      message,
    )
  )
    return purgedError('');
  if (/not in the master's binlog|is missing the GTID|does not exist in the binlog/i.test(message)) {
    return new CannotContinueError(
      'source_went_back',
      `The server does not have the transactions that were read before: it was set back, or is another one. ${RESET_HINT}. ${message}`,
    );
  }
  if (/same server_(uu)?id/i.test(message)) return new RetryableError('connection_lost', message);
  return withGrant(session, error);
}

export const purgedError = (position: string) =>
  new CannotContinueError(
    'binlog_purged',
    `The server has removed the binary log after ${position || 'the position of the stream'} (binlog_expire_logs_seconds, PURGE BINARY LOGS). ${RESET_HINT}`,
  );
