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
import { fixOf } from '../contract/fixes.ts';
import { fromClause, isIncremental, where } from '../kits/sql/request.ts';
import { goneOrRefused } from '../kits/sql/table-access.ts';
import { discoverStreams, hasLog, readableSchemas } from './read/catalog.ts';
import { databases, serverCheck } from './connection/check.ts';
import { grantsToRead, rightsToRead } from './connection/grants.ts';
import { datasetStreams } from './read/datasets.ts';
import { confirmLsn, slotLag } from './cdc/read-log.ts';
import { readChanges } from './cdc/read-changes.ts';
import { confirmReplication, leaveReplication, readReplication } from './cdc/read-replication.ts';
import { coversLsn, markLog } from './cdc/marks.ts';
import { canCopy, copyTables } from './cdc/table-copies.ts';
import { assertLogical, identityMissing, notLogged } from './cdc/table-shape.ts';
import { canCopyIncrement, copyIncrement } from './read/incremental-copy.ts';
import { compareOrigins, findOrigin } from './read/origin.ts';
import { begin } from './read/read-transaction.ts';
import { keepSnapshot } from './read/shared-snapshot.ts';
import { readRows } from './read/read-rows.ts';
import { findSequences } from './read/sequences.ts';
import { dropPublication, dropSlot, findSlot, isUsable, setUpError, slotName } from './cdc/replication-slots.ts';
import { conditions, resumeCondition } from './read/select.ts';
import { PgSession, withSession } from './connection/session.ts';
import { PostgresSourceConfig } from './connection/settings.ts';
import { isLsn, lsnValue } from './connection/lsn.ts';
import { digestSource } from './digest/sides.ts';
import { postgresNames, relation } from './connection/sql.ts';
import { tableFormats, tableStream } from './read/table-copy.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

export const postgresSource = defineSource<PostgresSourceConfig>({
  type: 'source',
  name: 'postgres',
  display_name: 'PostgreSQL',
  description: 'Tables and views of a PostgreSQL database',
  category: 'database',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['basic'],
  supported_sync_modes: ['full_refresh', 'incremental'],
  capabilities: { datasets: true, ssh_tunnel: true },
  // Not salted hashes: the source would have to know the salt.
  pushdown: { masking: ['none', 'hash_sha256', 'redact'], filters: true },
  config: PostgresSourceConfig,
  check,
  rights: rightsToRead,
  possibleValues: {
    database: databases,
    schemas: (ctx) =>
      withSession(ctx, { phase: 'setup' }, async (session) => {
        const names = await readableSchemas(session, []);
        return Object.fromEntries(Array.from(names.keys(), (name) => [name, name]));
      }),
  },
  discover: (ctx) => withSession(ctx, { phase: 'setup' }, (session) => discoverStreams(ctx, session)),
  describe: (ctx, stream) =>
    withSession(ctx, { phase: 'run', reads_catalog: true }, async (session) => {
      const about = { namespace: stream.namespace ?? '', name: stream.name };
      const [found] = await discoverStreams(ctx, session, about);
      // Names the cause, instead of reporting the columns of the log as missing.
      if (found && stream.change_log && !found.change_log && ctx.config.replication === 'logical') {
        throw (await hasLog(session, about)) ? identityMissing(stream.name) : notLogged(stream.name);
      }
      const table = relation(stream.namespace ?? 'public', stream.name);
      return found ?? goneOrRefused(session.query(`select 1 from ${table} limit 0`));
    }),
  describeDataset: (ctx, dataset) =>
    withSession(ctx, { phase: 'setup' }, async (session) => (await datasetStreams(session, [dataset]))[0]!),
  read: (ctx, request) => (request.reader_id === undefined ? readRows(ctx, request) : readChanges(ctx, request)),
  acknowledge: (ctx, request, state) => confirmLsn(ctx, slotName(request.reader_id!), state),
  canResume: async (ctx, { reader_id, state }) => {
    if (reader_id === undefined || state?.cursor == null) return true;
    const { cursor } = state;
    return withSession(ctx, { phase: 'run' }, async (session) => {
      const slot = await findSlot(session, slotName(reader_id));
      return isUsable(slot) && isLsn(cursor) && lsnValue(slot.confirmed) <= lsnValue(cursor);
    });
  },
  lag: (ctx, reader_id) => slotLag(ctx, slotName(reader_id)),
  release: (ctx, reader_id) =>
    withSession(ctx, { phase: 'run' }, async (session) => {
      await dropSlot(session, slotName(reader_id));
      await dropPublication(session, slotName(reader_id));
    }),
  origin: { find: findOrigin, compare: compareOrigins },
  replication: {
    read: readReplication,
    acknowledge: confirmReplication,
    leave: leaveReplication,
    mark: markLog,
    covers: coversLsn,
    canCopy,
    copiesAtOnce: true,
    copy: copyTables,
  },
  keepSnapshot,
  byteFormats,
  copy,
  estimate,
  reads_keys: true,
  digest: digestSource,
  sequences: findSequences,
});

async function check(ctx: Context): Promise<CheckResult> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const server = await serverCheck(session);
    const datasets = datasetsCheck(await datasetStreams(session, ctx.datasets ?? []));
    const replication = await replicationCheck(ctx, session);
    const counts = await readableSchemas(session, ctx.config.schemas);
    const missing = ctx.config.schemas.filter((name) => !counts.has(name));
    const total = Array.from(counts.values()).reduce((sum, count) => sum + count, 0);
    const problem = missing.length
      ? `Schema ${missing.join(', ')} does not exist`
      : total === 0
        ? 'No table or view is readable by this user'
        : null;
    const isUnreadable = missing.length === 0 && total === 0;
    return {
      checks: [
        ...server,
        ...replication,
        ...datasets,
        {
          title: 'Tables',
          status: problem ? 'failed' : 'passed',
          message: problem ?? `${total} readable tables and views`,
          ...(isUnreadable && { statements: await grantsToRead(session, ctx.config.schemas) }),
        },
      ],
    };
  });
}

async function replicationCheck(ctx: Context, session: PgSession): Promise<CheckResult['checks']> {
  if (ctx.config.replication !== 'logical') return [];
  const title = 'Logical replication';
  try {
    await assertLogical(session);
    await withSession(ctx, { phase: 'setup', replication: 'database' }, (line) => line.query('IDENTIFY_SYSTEM'));
  } catch (error) {
    const problem = setUpError(error);
    if (!(problem instanceof ConfigurationError)) throw problem;
    return [{ title, status: 'failed', message: problem.message, ...fixOf(problem) }];
  }
  return [{ title, status: 'passed', message: null }];
}

function byteFormats(request: ReadRequest): ByteFormat[] {
  if (request.reader_id !== undefined) return [];
  if (isIncremental(request)) return canCopyIncrement(request) ? ['pgcopy-text'] : [];
  return tableFormats(request);
}

async function copy(ctx: Context, request: ReadRequest, format: ByteFormat): Promise<ByteStream> {
  if (!byteFormats(request).includes(format)) {
    throw new ConfigurationError('unsupported_format', `These columns cannot be copied as ${format}`);
  }
  if (isIncremental(request)) return copyIncrement(ctx, request);
  return tableStream(ctx, request, { format });
}

/** What the planner expects: it knows filters, partitions and views. */
async function estimate(ctx: Context, request: ReadRequest): Promise<number | null> {
  // The number of changes is unknown until they are decoded.
  if (request.reader_id !== undefined && request.state) return null;
  const reads_catalog = request.stream.dataset_sql === undefined;
  return withSession(ctx, { phase: 'run', reads_catalog }, async (session) => {
    // The planner's numbers are of now, so the estimate joins no snapshot. One statement needs no transaction, except for a
    // query of the user's, which must not write.
    if (request.stream.dataset_sql !== undefined) {
      await begin(session, { ...request, snapshot: null, onSnapshot: undefined });
    }
    const { rows } = await session.query(
      `explain (format json) select 1 from ${fromClause(postgresNames, request)}${where([...conditions(request), ...resumeCondition(request)])}`,
    );
    const [plan] = JSON.parse(rows[0]![0]!) as { Plan?: { 'Plan Rows'?: number } }[];
    return plan?.Plan?.['Plan Rows'] ?? null;
  });
}
