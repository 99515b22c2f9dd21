import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { USER_SCHEMAS } from './read/catalog.ts';
import { databases, serverCheck } from './connection/check.ts';
import { PgSession, withSession } from './connection/session.ts';
import { PostgresDestinationConfig } from './connection/settings.ts';
import { ensureRejectedTable } from './write/rejects.ts';
import { claimState, ensureStateTable, lockDefinitions } from './write/state-table.ts';
import { addDeletionColumn, addMissingColumns, createTable, ensureUniqueKey, findTable } from './write/tables.ts';
import { checkTarget, resolveTarget } from './write/target.ts';
import { widenColumns } from './write/widen.ts';
import { PgWriter } from './write/writer.ts';

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
  check,
  possibleValues: { database: databases, schema: schemas },
  open,
});

async function check(ctx: Context): Promise<CheckResult> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const server = await serverCheck(session);
    const { rows } = await session.query(
      `select pg_is_in_recovery(), n.oid, has_schema_privilege(n.oid, 'create') and has_schema_privilege(n.oid, 'usage'),
              has_database_privilege(current_database(), 'create')
         from (select) one left join pg_namespace n on n.nspname = $1`,
      [ctx.config.schema],
    );
    const [[standby, schema, mayUse, mayCreate] = []] = rows;
    const problem =
      standby === 't'
        ? 'The server is a read-only standby'
        : schema !== null && mayUse !== 't'
          ? `This user may not create tables in the schema ${ctx.config.schema}`
          : schema === null && mayCreate !== 't'
            ? `There is no schema ${ctx.config.schema}, and this user may not create it`
            : null;
    return { checks: [...server, { title: 'Schema', status: problem ? 'failed' : 'passed', message: problem }] };
  });
}

async function schemas(ctx: Context): Promise<Record<string, string>> {
  return withSession(ctx, { phase: 'setup' }, async (session) => {
    const { rows } = await session.query(`select n.nspname from pg_namespace n where ${USER_SCHEMAS} order by 1`);
    return Object.fromEntries(rows.map(([name]) => [name!, name!]));
  });
}

/**
 * Claims the stream and makes the table ready for its columns, in one short transaction. A table that is not there yet
 * is made together with its first rows, so that a run which commits nothing leaves nothing; but not one for windows,
 * whose chunks run side by side: the first one's commit, at its very end, would be waited for by all others.
 */
async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  const schema = target.schema ?? ctx.config.schema;
  checkTarget(target, schema);
  const placed = { ...target, schema };
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    // A worker frozen in the middle of a commit must not hold its locks for ever.
    await session.query(
      "begin; set local lock_timeout = '30s'; set local search_path = ''; set idle_in_transaction_session_timeout = '60s'",
    );
    await lockDefinitions(session, schema);
    await ensureStateTable(session, schema);
    if (target.rejects) await ensureRejectedTable(session, schema);
    const state = await claimState(session, placed);
    let existing = await findTable(session, schema, target.table);
    if (existing && target.mode !== 'overwrite') {
      await addMissingColumns(session, placed, existing);
      await widenColumns(session, placed, existing);
    }
    if (existing && (target.mode === 'append_dedup' || target.mode === 'soft_delete')) {
      await ensureUniqueKey(session, placed, existing);
    }
    if (existing && target.mode === 'soft_delete') await addDeletionColumn(session, placed);
    if (!existing && target.mode === 'update') {
      throw new ConfigurationError(
        'table_missing',
        `There is no table ${schema}.${target.table}: update changes rows of a table that is there`,
      );
    }
    if (!existing && target.replace_window) {
      await createTable(session, resolveTarget(placed, schema, null), { name: target.table, primaryKey: false });
      existing = await findTable(session, schema, target.table);
    }
    await session.query('commit');
    return new PgWriter(ctx, session, { target: resolveTarget(target, schema, existing), state });
  } catch (error) {
    await session.close();
    throw error;
  }
}
