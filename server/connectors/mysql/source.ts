import { freeBytes } from '../../platform/memory/free-bytes.ts';
import { datasetsCheck } from '../kits/sql/datasets.ts';
import {
  type ByteFormat,
  type ByteStream,
  type CheckResult,
  type ConnectorContext,
  defineSource,
  type ReadRequest,
} from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { fromClause, isIncremental, where } from '../kits/sql/request.ts';
import { goneOrRefused } from '../kits/sql/table-access.ts';
import { measureLag } from './binlog/lag.ts';
import { logCheck } from './binlog/log-server.ts';
import { canResume, readChanges, readReplication } from './binlog/read-replication.ts';
import { coversGtid, markLog } from './binlog/marks.ts';
import { canCopy, copyTables } from './binlog/table-copies.ts';
import { notLogged } from './binlog/table-shape.ts';
import { countTables, discoverStreams } from './read/catalog.ts';
import { CopiedTexts } from './read/copied-texts.ts';
import { databases, serverCheck } from './connection/check.ts';
import { rightsToRead } from './connection/grants.ts';
import { asDescribed, datasetStreams } from './read/datasets.ts';
import { compareOrigins, findOrigin } from './read/origin.ts';
import { fullRest, keepsZeroDates, readRows, warnOfZeroDates } from './read/read-rows.ts';
import { findSequences } from './read/sequences.ts';
import { keepSnapshot, openToRead } from './read/shared-snapshot.ts';
import { RowText } from './connection/row-text.ts';
import { conditions, resumeCondition, selection } from './read/select.ts';
import { withSession } from './connection/session.ts';
import { digestSource } from './digest/sides.ts';
import { MysqlSourceConfig } from './connection/settings.ts';
import { mysqlNames, relation } from './connection/sql.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

const PIECE_BYTES = 320 * 1024;

export const mysqlSource = defineSource<MysqlSourceConfig>({
  type: 'source',
  name: 'mysql',
  display_name: 'MySQL / MariaDB',
  description: 'Tables and views of a MySQL or MariaDB database',
  category: 'database',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['basic'],
  capabilities: { datasets: true, ssh_tunnel: true },
  supported_sync_modes: ['full_refresh', 'incremental'],
  // Not salted hashes: the source would have to know the salt.
  pushdown: { masking: ['none', 'hash_sha256', 'redact'], filters: true },
  config: MysqlSourceConfig,
  check,
  rights: rightsToRead,
  possibleValues: { database: databases },
  discover: (ctx) =>
    withSession(ctx, { phase: 'setup' }, async (session) => {
      const { database } = ctx.config;
      const tables = await discoverStreams(session, { database, logged: isLogged(ctx) });
      return [...tables, ...(await datasetStreams(session, ctx.datasets ?? []))];
    }),
  describe: (ctx, known) =>
    withSession(ctx, { phase: 'run' }, async (session) => {
      const { name } = known;
      const { database } = ctx.config;
      const found = await discoverStreams(session, { database, table: name, logged: isLogged(ctx) });
      const table = relation(database, name);
      const stream = found.find((one) => one.name === name);
      if (stream && known.change_log && !stream.change_log && isLogged(ctx)) throw await notLogged(session, known);
      return stream ?? goneOrRefused(session.query(`select 1 from ${table} limit 0`));
    }),
  describeDataset: (ctx, dataset) =>
    withSession(ctx, { phase: 'setup' }, async (session) => (await datasetStreams(session, [dataset]))[0]!),
  read: (ctx, request) => (request.reader_id === undefined ? readRows(ctx, request) : readChanges(ctx, request)),
  acknowledge: async (ctx, _request, state) => measureLag(ctx, [state]),
  canResume,
  replication: {
    read: readReplication,
    canCopy,
    copiesAtOnce: false,
    copy: copyTables,
    acknowledge: async (ctx, _request, states) => measureLag(ctx, states),
    // The server keeps its log for a time.
    leave: async () => {},
    mark: markLog,
    covers: coversGtid,
  },
  origin: { find: findOrigin, compare: compareOrigins },
  keepSnapshot,
  keeps_snapshot_in_process: true,
  byteFormats,
  copy,
  estimate,
  digest: digestSource,
  sequences: findSequences,
});

async function check(ctx: Context): Promise<CheckResult> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const server = serverCheck(session);
    const log = await logCheck(ctx, session);
    const count = await countTables(session, ctx.config.database);
    const datasets = await datasetStreams(session, ctx.datasets ?? []);
    return {
      checks: [
        ...server,
        ...log,
        ...datasetsCheck(datasets),
        {
          title: 'Tables',
          status: count === 0 ? 'failed' : 'passed',
          message: count === 0 ? 'No table or view is readable by this user' : `${count} readable tables and views`,
        },
      ],
    };
  });
}

const isLogged = ({ config }: Context) => config.replication === 'logical';

/** Byte streams of MySQL carry no state, so incremental reads use the row lane. */
function byteFormats(request: ReadRequest): ByteFormat[] {
  if (request.reader_id !== undefined) return [];
  return isIncremental(request) ? [] : ['pgcopy-text'];
}

async function copy(ctx: Context, wanted: ReadRequest, format: ByteFormat): Promise<ByteStream> {
  if (!byteFormats(wanted).includes(format)) {
    throw new ConfigurationError('unsupported_format', `These columns cannot be copied as ${format}`);
  }
  const { session, close } = await openToRead(ctx, wanted);
  const request = await asDescribed(session, wanted).catch(async (error: unknown) => {
    await close();
    throw session.translate(error);
  });
  const { list, forms } = selection(request.columns, keepsZeroDates(ctx));
  const rows = new RowText(forms, PIECE_BYTES);
  const texts = new CopiedTexts(request);
  async function* chunks() {
    try {
      const select = `select ${list}${fullRest(request, keepsZeroDates(ctx))}`;
      for await (const piece of session.stream(select, rows)) yield texts.passed(piece);
      warnOfZeroDates(ctx, rows);
      texts.warn(ctx);
    } catch (error) {
      throw session.translate(error);
    } finally {
      await close();
    }
  }
  return { format, chunks: chunks(), rows: () => rows.rows, reuse: freeBytes, computed: true };
}

/** The optimizer's estimate, which takes indexed filters into account. */
async function estimate(ctx: Context, wanted: ReadRequest): Promise<number | null> {
  // The number of changes is unknown until they are read.
  if (wanted.reader_id !== undefined && wanted.state) return null;
  return withSession(ctx, { phase: 'run' }, async (session) => {
    const request = await asDescribed(session, wanted);
    const parts = [...conditions(request, keepsZeroDates(ctx)), ...resumeCondition(request)];
    const isMySql = session.version.flavor === 'MySQL';
    const explain = isMySql ? 'explain format = traditional' : 'explain';
    const { rows } = await session.query(`${explain} select 1 from ${fromClause(mysqlNames, request)}${where(parts)}`);
    // id, select_type, table, (MySQL: partitions,) type, possible_keys, key, key_len, ref, rows
    const count = rows[0]?.[isMySql ? 9 : 8];
    return count == null ? null : Number(count);
  });
}
