import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { databases, serverCheck } from './connection/check.ts';
import { settleLeftover } from './write/load.ts';
import { ensureRejectedTable } from './write/rejects.ts';
import { MysqlSession, withSession } from './connection/session.ts';
import { MysqlDestinationConfig } from './connection/settings.ts';
import { relation, shortHash } from './connection/sql.ts';
import { claimState, ensureStateTable, lockDefinitions } from './write/state-table.ts';
import {
  addDeletionColumn,
  addMissingColumns,
  createTable,
  ensureUniqueKey,
  findTable,
  tableOptions,
} from './write/tables.ts';
import { checkTarget, resolveTarget } from './write/target.ts';
import { widenColumns } from './write/widen.ts';
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
  check,
  possibleValues: { database: databases },
  open,
});

/** Makes a table and drops it again: rights are spread over too many places to be read. */
async function check(ctx: Context): Promise<CheckResult> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const checks = serverCheck(session);
    const probe = relation(ctx.config.database, `_pipeline_check_${shortHash(crypto.randomUUID())}`);
    await session.query(`create table ${probe} (id int primary key) ${tableOptions(session.version)}`);
    await session.query(`insert into ${probe} values (1)`);
    await session.query(`drop table ${probe}`);
    checks.push({ title: 'Tables', status: 'passed', message: 'Tables can be made, written and dropped' });
    const fast = await allowsLocalInfile(session);
    checks.push({
      title: 'Bulk loading',
      status: fast ? 'passed' : 'skipped',
      message: fast
        ? null
        : 'local_infile is off on the server: rows go by INSERT, which takes about three times as long',
    });
    return { checks };
  });
}

async function allowsLocalInfile(session: MysqlSession): Promise<boolean> {
  const { rows } = await session.query('select @@local_infile');
  return rows[0]?.[0] === '1';
}

/**
 * Claims the stream, settles what an attempt before has left and makes the table ready for its columns. A table that is
 * not there yet is made when its first rows come.
 */
async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  const schema = target.schema ?? ctx.config.database;
  checkTarget(target, schema);
  const placed = { ...target, schema };
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    const localInfile = await allowsLocalInfile(session);
    const { state, existing } = await lockDefinitions(session, schema, async () => {
      await ensureStateTable(session, schema);
      if (target.rejects) await ensureRejectedTable(session, schema);
      const claimed = await claimState(session, placed);
      await settleLeftover(session, schema, claimed);
      let found = await findTable(session, schema, target.table);
      if (found && target.mode !== 'overwrite') {
        await addMissingColumns(session, placed, found);
        await widenColumns(session, placed, found);
      }
      if (found && (target.mode === 'append_dedup' || target.mode === 'soft_delete')) {
        await ensureUniqueKey(session, placed);
      }
      if (found && target.mode === 'soft_delete') await addDeletionColumn(session, placed, found);
      if (!found && target.mode === 'update') {
        throw new ConfigurationError(
          'table_missing',
          `There is no table ${schema}.${target.table}: update changes rows of a table that is there`,
        );
      }
      // Chunks side by side have to make it.
      if (!found && target.replace_window) {
        await createTable(session, resolveTarget(placed, null, session.version), target.table);
        found = await findTable(session, schema, target.table);
      }
      return { state: claimed, existing: found };
    });
    return new MysqlWriter(ctx, session, {
      target: resolveTarget(placed, existing, session.version),
      state,
      localInfile,
    });
  } catch (error) {
    await session.close();
    throw error;
  }
}
