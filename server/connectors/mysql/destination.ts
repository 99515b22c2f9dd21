import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { openTarget } from '../kits/sql/open-target.ts';
import { shortHash } from '../kits/sql/names.ts';
import type { StateRow } from '../kits/sql/state-row.ts';
import { sampleTable } from '../kits/sql/table-access.ts';
import { checkTarget } from '../kits/sql/target.ts';
import { databases, serverCheck } from './connection/check.ts';
import { MysqlSession, withSession } from './connection/session.ts';
import { rightsToWrite } from './connection/grants.ts';
import { digestDestination } from './digest/sides.ts';
import { MysqlDestinationConfig } from './connection/settings.ts';
import { literal, relation } from './connection/sql.ts';
import { mysqlDialect, mysqlNameRules } from './write/dialect.ts';
import { PENDING_TABLE, resumePending } from './write/pending-table.ts';
import { ensureUniqueKey, findTable } from './write/tables.ts';
import { withShapes } from './write/target.ts';
import { mysqlWriter } from './write/writer.ts';

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
});

/** Creates a table and drops it again: privileges are spread over too many places to be read. */
async function check(ctx: Context): Promise<CheckResult> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const checks = serverCheck(session);
    const probe = relation(ctx.config.database, `_pipeline_check_${shortHash(crypto.randomUUID())}`);
    await session.query(`create table ${probe} (id int primary key) ${mysqlDialect(session.version).tableOptions}`);
    await session.query(`insert into ${probe} values (1)`);
    await session.query(`drop table ${probe}`);
    checks.push({ title: 'Tables', status: 'passed', message: 'Tables can be created, written and dropped' });
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
      findTable: findTable.bind(null, session),
      ensureUniqueKey: ensureUniqueKey.bind(null, db),
      extraState: [PENDING_TABLE],
      resume: (state: StateRow) => resumePending(session, placed.schema, state),
      atomically: <Result>(work: () => Promise<Result>) => inTransaction(session, work),
      createsForWindows: true,
    };
    const opened = await lockDefinitions(session, placed.schema, () => openTarget(opening, placed));
    return mysqlWriter(ctx, { ...db, target: withShapes(opened.target), state: opened.state, localInfile });
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

/** Streams open in parallel: one at a time may define tables of a database. */
async function lockDefinitions<Result>(
  session: MysqlSession,
  schema: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const name = `concat('data-pipelines:', left(sha2(${literal(schema)}, 256), 40))`;
  await session.query(`select get_lock(${name}, 600)`, { slow: true });
  const result = await work();
  // After an error the session is closed, which releases the lock as well.
  await session.query(`select release_lock(${name})`);
  return result;
}
