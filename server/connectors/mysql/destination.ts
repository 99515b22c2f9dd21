import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { openTarget } from '../kits/sql/open-target.ts';
import { shortHash } from '../kits/sql/names.ts';
import { PENDING_TABLE } from '../kits/sql/publish/pending-table.ts';
import { READY, resumeReady } from '../kits/sql/publish/ready.ts';
import type { StateRow } from '../kits/sql/state-row.ts';
import { sampleTable } from '../kits/sql/table-access.ts';
import { checkTarget } from '../kits/sql/target.ts';
import { databases, serverCheck } from './connection/check.ts';
import { MysqlSession, withSession } from './connection/session.ts';
import { grantsToCreate, rightsToWrite } from './connection/grants.ts';
import { digestDestination } from './digest/sides.ts';
import { MysqlDestinationConfig } from './connection/settings.ts';
import { literal, relation } from './connection/sql.ts';
import { mysqlDialect, mysqlNameRules } from './write/dialect.ts';
import { lockDefinitions } from './write/locks.ts';
import { resumePending } from './write/pending-table.ts';
import { discardTables, dropReplaced, publishTables } from './write/publish.ts';
import { ensureUniqueKey, findTable, refuseGenerated } from './write/tables.ts';
import { withShapes } from './write/target.ts';
import { MysqlWriter } from './write/writer.ts';

type Context = ConnectorContext<MysqlDestinationConfig>;

export const mysqlDestination = defineDestination<MysqlDestinationConfig>({
  type: 'destination',
  name: 'mysql',
  display_name: 'MySQL / MariaDB',
  description: 'Tables of a MySQL or MariaDB database',
  category: 'database',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['basic'],
  capabilities: { ssh_tunnel: true },
  supported_destination_sync_modes: ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'],
  applies_changes: true,
  replaces_windows: true,
  keeps_rejects: true,
  config: MysqlDestinationConfig,
  names: mysqlNameRules,
  locate: ({ host, port = 3306, database = '' }) => ({ store: `${host}:${port}`, schema: database }),
  check,
  rights: rightsToWrite,
  possibleValues: { database: databases },
  sampleTable: (ctx, { schema, ...sample }) =>
    withSession(ctx, { phase: 'setup' }, async (session) => {
      const dialect = mysqlDialect(session.version);
      return sampleTable({ session, dialect }, { ...sample, schema: schema ?? ctx.config.database });
    }),
  open,
  digest: digestDestination,
  publish: (ctx, group) => publishTables(ctx, group),
  discard: (ctx, group) => discardTables(ctx, group),
});

async function check(ctx: Context, at?: { schema: string | null }): Promise<CheckResult> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const checks = serverCheck(session);
    checks.push(await tablesCheck(ctx.config, session, at?.schema ?? ctx.config.database));
    const fast = await allowsLocalInfile(session);
    checks.push({
      title: 'Bulk loading',
      status: fast ? 'passed' : 'skipped',
      message: fast
        ? null
        : 'local_infile is off on the server. Rows are loaded by INSERT, which takes about three times as long',
    });
    return { checks };
  });
}

/** Creates a table and drops it again: privileges are spread over too many places to be read. */
async function tablesCheck(
  { database: own, username }: MysqlDestinationConfig,
  session: MysqlSession,
  database: string,
): Promise<CheckResult['checks'][number]> {
  const title = 'Tables';
  if (database !== own && !(await isVisible(session, database))) {
    const message = `There is no database ${database}, or this user may not see it. The first run tries to create it`;
    const fix = 'Let an administrator run the statements, then test again.';
    return { title, status: 'skipped', message, fix, statements: grantsToCreate({ username, database }) };
  }
  const probe = relation(database, `_pipeline_check_${shortHash(crypto.randomUUID())}`);
  await session.query(`create table ${probe} (id int primary key) ${mysqlDialect(session.version).tableOptions}`);
  await session.query(`insert into ${probe} values (1)`);
  await session.query(`drop table ${probe}`);
  return { title, status: 'passed', message: 'Tables can be created, written and dropped' };
}

async function isVisible(session: MysqlSession, database: string): Promise<boolean> {
  const named = `schema_name = ${literal(database)}`;
  const { rows } = await session.query(`select 1 from information_schema.schemata where ${named}`);
  return rows.length > 0;
}

async function allowsLocalInfile(session: MysqlSession): Promise<boolean> {
  const { rows } = await session.query('select @@local_infile');
  return rows[0]?.[0] === '1';
}

async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  const placed = { ...target, schema: target.schema ?? ctx.config.database };
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    const dialect = mysqlDialect(session.version);
    checkTarget(dialect, placed);
    const localInfile = await allowsLocalInfile(session);
    const db = { session, dialect };
    const opening = {
      ...db,
      findTable: async (schema: string, table: string) => {
        const found = await findTable(session, schema, table);
        if (found) refuseGenerated(placed, found);
        return found;
      },
      ensureUniqueKey: ensureUniqueKey.bind(null, db),
      extraState: [PENDING_TABLE, READY],
      resume: async (state: StateRow) => {
        await resumePending(session, placed.schema, state);
        await dropReplaced(session, placed.schema, state);
        await resumeReady(db, state, placed);
      },
      atomically: <Result>(work: () => Promise<Result>) => inTransaction(session, work),
      createsForWindows: true,
    };
    const opened = await lockDefinitions(session, placed.schema, () => openTarget(opening, placed));
    return MysqlWriter.of(ctx, { ...db, target: withShapes(opened.target), state: opened.state, localInfile });
  } catch (error) {
    await session.close();
    throw error;
  }
}

async function inTransaction<Result>(session: MysqlSession, work: () => Promise<Result>): Promise<Result> {
  await session.query('start transaction');
  const result = await work();
  await session.query('commit');
  return result;
}
