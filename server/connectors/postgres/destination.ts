import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type ReplicationTarget,
  type ReplicationWriter,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { ofStream } from '../contract/replication.ts';
import { openTarget, type TargetDatabase } from '../kits/sql/open-target.ts';
import type { StateRow } from '../kits/sql/state-row.ts';
import { PENDING_TABLE } from '../kits/sql/publish/pending-table.ts';
import { READY, resumeReady } from '../kits/sql/publish/ready.ts';
import { sampleTable } from '../kits/sql/table-access.ts';
import { tableDefinition } from '../kits/sql/tables.ts';
import { checkTarget, type PlacedTarget } from '../kits/sql/target.ts';
import { USER_SCHEMAS } from './read/catalog.ts';
import { databases, serverCheck } from './connection/check.ts';
import { grantsToWrite, rightsToWrite } from './connection/grants.ts';
import { PgSession, withSession } from './connection/session.ts';
import { digestDestination } from './digest/sides.ts';
import { PostgresDestinationConfig } from './connection/settings.ts';
import { postgres } from './write/dialect.ts';
import { definitionsLock, LOCK_LIMIT } from './write/locks.ts';
import { resumePending } from './write/pending-table.ts';
import { ensureUniqueKey, findTable } from './write/tables.ts';
import type { PgTable, PgTarget } from './write/target.ts';
import { deferForeignKeys } from './write/foreign-keys.ts';
import { ReplicationSession } from './write/replication/session.ts';
import { comparesBytes, exactKey } from './write/replication/staged-keys.ts';
import { PgReplicationWriter } from './write/replication/writer.ts';
import { discardTables, publishTables } from './write/publish.ts';
import { advanceSequences } from './write/sequences.ts';
import { FLUSHES_ALONE, LIMITS, LoadTransaction } from './write/load-transaction.ts';
import { openBeside, PgWriter } from './write/writer.ts';

type Context = ConnectorContext<PostgresDestinationConfig>;

export const postgresDestination = defineDestination<PostgresDestinationConfig>({
  type: 'destination',
  name: 'postgres',
  display_name: 'PostgreSQL',
  description: 'Tables of a PostgreSQL database',
  category: 'database',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['basic'],
  capabilities: { ssh_tunnel: true },
  supported_destination_sync_modes: ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'],
  applies_changes: true,
  replaces_windows: true,
  keeps_rejects: true,
  config: PostgresDestinationConfig,
  names: postgres.names,
  locate: ({ host, port = 5432, database = 'postgres', schema = 'public' }) => ({
    store: `${host}:${port}/${database}`,
    schema,
  }),
  defineTable: ({ schema = 'public' }, table) => tableDefinition(postgres, table, table.schema ?? schema),
  check,
  rights: rightsToWrite,
  possibleValues: { database: databases, schema: schemas },
  sampleTable: (ctx, { schema, ...sample }) =>
    withSession(ctx, { phase: 'setup' }, async (session) => {
      await session.query("begin read only; set local search_path = ''");
      return sampleTable({ session, dialect: postgres }, { ...sample, schema: schema ?? ctx.config.schema });
    }),
  open,
  digest: digestDestination,
  advanceSequences,
  openReplication,
  publish: (ctx, group) => publishTables(ctx, group),
  discard: (ctx, group) => discardTables(ctx, group),
});

async function check(ctx: Context, at?: { schema: string | null }): Promise<CheckResult> {
  const name = at?.schema ?? null;
  const schema = { name: name ?? ctx.config.schema, is_default: name === null };
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    return { checks: [...(await serverCheck(session)), await schemaCheck(session, schema)] };
  });
}

const WRITABLE = "has_schema_privilege(n.oid, 'create') and has_schema_privilege(n.oid, 'usage')";

/**
 * Since version 15, only its owner may create tables in `public`. A connection may name a schema of its own, so the
 * check of the default one fails only when this user can write nowhere.
 */
async function schemaCheck(
  session: PgSession,
  { name: schema, is_default }: { name: string; is_default: boolean },
): Promise<CheckResult['checks'][number]> {
  const { rows } = await session.query(
    `select pg_is_in_recovery(), n.oid, ${WRITABLE}, has_database_privilege(current_database(), 'create'),
              exists (select from pg_namespace n where ${WRITABLE} and ${USER_SCHEMAS})
         from (select) one left join pg_namespace n on n.nspname = $1`,
    { values: [schema] },
  );
  const [[standby, found, isWritable, mayCreate, another] = []] = rows;
  const title = is_default ? 'Schema' : `Schema ${schema}`;
  if (standby === 't') {
    const fix = 'Connect to the primary server, which accepts writes.';
    return { title, status: 'failed', message: 'The server is a read-only standby', fix };
  }
  const exists = found !== null;
  if (isWritable === 't' || (!exists && mayCreate === 't')) return { title, status: 'passed', message: null };
  const problem = exists
    ? `This user may not create tables in the schema ${schema}`
    : `There is no schema ${schema}, and this user may not create it`;
  const statements = await grantsToWrite(session, { name: schema, exists });
  if (!is_default) {
    const fix = 'Select another schema, or let the owner of the database run one of the statements.';
    return { title, status: 'failed', message: problem, fix, statements };
  }
  if (mayCreate !== 't' && another !== 't') {
    const fix = 'Let the owner of the database run one of the statements, then test again.';
    return { title, status: 'failed', message: problem, fix, statements };
  }
  const fix = 'Set a destination schema in each connection, or let its owner run the first statement.';
  return { title, status: 'skipped', message: problem, fix, statements };
}

async function schemas(ctx: Context): Promise<Record<string, string>> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const { rows } = await session.query(`select n.nspname from pg_namespace n where ${USER_SCHEMAS} order by 1`);
    return Object.fromEntries(rows.map(([name]) => [name!, name!]));
  });
}

async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  const placed = placedIn(ctx, target);
  return openSession(ctx, [placed], async (session) => {
    const opened = await openTarget<PgTable>(databaseOf(session), placed);
    return PgWriter.of(ctx, new LoadTransaction(session), opened);
  });
}

async function openReplication(ctx: Context, targets: readonly ReplicationTarget[]): Promise<ReplicationWriter> {
  const placed: PlacedTarget[] = [];
  for (const [at, { target }] of targets.entries()) placed.push(await ofStream(at, async () => placedIn(ctx, target)));
  return openSession(ctx, placed, async (session) => {
    const transaction = new LoadTransaction(session, true);
    const writers: PgWriter[] = [];
    const tables: PgTarget[] = [];
    for (const [at, target] of placed.entries()) {
      const opened = await ofStream(at, () => openTarget<PgTable>(databaseOf(session), target));
      tables.push(opened.target);
      writers.push(PgWriter.of({ ...ctx, warn: targets[at]!.warn }, transaction, opened));
    }
    const foreignKeys = await deferForeignKeys(session, tables, (at, code, message) =>
      targets[at]!.warn(code, message),
    );
    transaction.defers = foreignKeys.some(({ length }) => length > 0);
    const [{ schema, connection_id }] = placed as [PlacedTarget];
    const { rows } = await session.query(`select ${FLUSHES_ALONE}, ${comparesBytes(tables)}`);
    const [flushesAlone, comparable] = rows[0]!.map((cell) => cell === 't');
    const usesKeys = comparable && writers.every(({ takesTurns }) => takesTurns);
    const first = new ReplicationSession(transaction, writers, {
      foreignKeys,
      keys: tables.map((target) => (usesKeys ? exactKey(target) : null)),
      states: { schema, connection_id },
    });
    return new PgReplicationWriter(first, () => openBeside(ctx), flushesAlone!);
  });
}

function placedIn(ctx: Context, target: WriteTarget): PlacedTarget {
  const placed = { ...target, schema: target.schema ?? ctx.config.schema };
  checkTarget(postgres, placed);
  return placed;
}

/** Prepares tables in one transaction of a new session, which the writer keeps. */
async function openSession<Result>(
  ctx: Context,
  targets: readonly PlacedTarget[],
  prepare: (session: PgSession) => Promise<Result>,
): Promise<Result> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    const settings = `set local lock_timeout = '${LOCK_LIMIT}'; set local search_path = ''; ${LIMITS}`;
    const locks = [...new Set(targets.map((target) => target.schema))].map(definitionsLock);
    for (const statement of ['begin', settings, ...locks]) session.ahead(statement);
    const writer = await prepare(session);
    await session.query('commit');
    return writer;
  } catch (error) {
    await session.close();
    throw error;
  }
}

const databaseOf = (session: PgSession): TargetDatabase<PgTable> => ({
  session,
  dialect: postgres,
  findTable: findTable.bind(null, session),
  ensureUniqueKey: ensureUniqueKey.bind(null, session),
  atomically: <Result>(work: () => Promise<Result>) => work(),
  createsForWindows: true,
  extraState: [READY, PENDING_TABLE],
  async resume(state: StateRow, at: PlacedTarget) {
    await resumePending(session, state, at);
    await resumeReady({ session, dialect: postgres }, state, at);
  },
});
