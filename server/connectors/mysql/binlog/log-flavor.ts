import { CannotContinueError } from '../../contract/errors.ts';
import type { MysqlSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import { encodedSet, parsePosition, type Position, positionText } from './gtid.ts';
import { RESET_HINT } from './reset-hint.ts';
import { SIGNED_IN_MARIADB, SIGNED_IN_MYSQL } from './table-map.ts';

/** A server without changes sends a heartbeat this often, which shows that the connection is alive. */
const HEARTBEAT_NS = 1_000_000_000;

/** What differs between the logs of MariaDB and MySQL. */
export interface LogFlavor {
  /** What the user needs to read the log. */
  rights: string;
  /** Variables and the values that they must have. */
  required: Readonly<Record<string, string>>;
  /** As of `parseTable`. */
  signed: ReadonlySet<number>;
  /** The last transaction of each domain in the log. */
  current(session: MysqlSession): Promise<Position>;
  /** From where on the server still has its log. */
  oldest(session: MysqlSession): Promise<Position>;
  /** Prepares the session to read. @returns what the command names, or null */
  prepare(session: MysqlSession, from: Position, checksum: string): Promise<Buffer | null>;
}

const ROWS = { binlog_format: 'ROW', binlog_row_image: 'FULL', binlog_row_metadata: 'FULL' };

const mariadb: LogFlavor = {
  rights: 'REPLICATION SLAVE, BINLOG MONITOR',
  required: ROWS,
  signed: SIGNED_IN_MARIADB,
  current: async (session) => parsePosition(await valueOf(session, '@@global.gtid_binlog_pos')) ?? new Map(),
  async oldest(session) {
    const { rows } = await session.query('show binary logs');
    const [file] = rows[0] ?? [];
    const found = await session.query(`select binlog_gtid_pos(${literal(file ?? '')}, 4)`, { slow: true });
    return parsePosition(found.rows[0]?.[0] ?? '') ?? new Map();
  },
  async prepare(session, from, checksum) {
    await session.query(
      `set @master_binlog_checksum = ${literal(checksum)}, @mariadb_slave_capability = 4,
         @master_heartbeat_period = ${HEARTBEAT_NS}, @slave_connect_state = ${literal(positionText(from))},
         @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0`,
    );
    await session.query('set max_statement_time = 0');
    return null;
  },
};

const mysql: LogFlavor = {
  rights: 'REPLICATION SLAVE, REPLICATION CLIENT',
  required: { ...ROWS, gtid_mode: 'ON', binlog_row_value_options: '', binlog_transaction_compression: 'OFF' },
  signed: SIGNED_IN_MYSQL,
  current: (session) => setOf(session, '@@global.gtid_executed'),
  oldest: (session) => setOf(session, '@@global.gtid_purged'),
  async prepare(session, from, checksum) {
    // Before 8.0.26 the names were other ones. Without a UUID the server ends readers that share an id.
    const names = { binlog_checksum: literal(checksum), heartbeat_period: String(HEARTBEAT_NS) };
    const both = Object.entries(names).flatMap(([name, value]) =>
      ['master', 'source'].map((prefix) => `@${prefix}_${name} = ${value}`),
    );
    const uuid = literal(crypto.randomUUID());
    await session.query(`set ${both.join(', ')}, @slave_uuid = ${uuid}, @replica_uuid = ${uuid}`);
    await session.query('set max_execution_time = 0');
    return encodedSet(from);
  },
};

export const logFlavorOf = ({ version }: MysqlSession): LogFlavor => (version.flavor === 'MySQL' ? mysql : mariadb);

async function valueOf(session: MysqlSession, name: string): Promise<string> {
  const { rows } = await session.query(`select ${name}`);
  return rows[0]?.[0] ?? '';
}

/** @throws ConfigurationError `gtids_out_of_order` for a set in which transactions are missing or have a tag */
async function setOf(session: MysqlSession, name: string): Promise<Position> {
  const text = (await valueOf(session, name)).replaceAll('\n', '');
  const position = parsePosition(text);
  if (position) return position;
  throw new CannotContinueError(
    'gtids_out_of_order',
    `The server has executed ${text}, in which transactions are missing, or have a tag, which is not supported. The log can be read once its GTIDs follow each other: set replica_preserve_commit_order = ON on a replica, and execute the missing ones. ${RESET_HINT}`,
  );
}
