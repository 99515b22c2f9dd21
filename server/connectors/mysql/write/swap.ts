import { ConfigurationError, ConnectorError } from '../../contract/errors.ts';
import { shortHash } from '../../kits/sql/names.ts';
import type { MysqlSession } from '../connection/session.ts';
import { derivedName, literal, relation } from '../connection/sql.ts';
import { findTable } from './tables.ts';

const LOCK_SECONDS = 5;
const MAX_LOCK_ATTEMPTS = 60;

/** A table, and the new one that replaces it. */
export interface Swap {
  schema: string;
  table: string;
  fresh: string;
}

/** The name of the replaced table until it is dropped. */
export const oldName = ({ table, fresh }: Pick<Swap, 'table' | 'fresh'>) =>
  derivedName(table, `__old_${shortHash(fresh)}`);

/**
 * Replaces the old table by the new one. May be repeated after a crash at any point. The rename is atomic: readers see
 * one table or the other. Grants belong to the name and stay.
 */
export async function swapIn(session: MysqlSession, { schema, table, fresh }: Swap): Promise<void> {
  const old = oldName({ table, fresh });
  if (await findTable(session, schema, fresh)) {
    const steps = [`${relation(schema, fresh)} to ${relation(schema, table)}`];
    if (await findTable(session, schema, table))
      steps.unshift(`${relation(schema, table)} to ${relation(schema, old)}`);
    await renameWithRetries(session, `rename table ${steps.join(', ')}`);
  }
  await session.query(`drop table if exists ${relation(schema, old)}`, { slow: true });
}

/** In short attempts: every other session queues up behind a lock request that waits. */
async function renameWithRetries(session: MysqlSession, statement: string): Promise<void> {
  await session.query(`set lock_wait_timeout = ${LOCK_SECONDS}`);
  for (let attempt = 1; ; attempt++) {
    try {
      await session.query(statement, { slow: true });
      break;
    } catch (error) {
      const busy = error instanceof ConnectorError && error.code === 'lock_timeout';
      if (!busy || attempt === MAX_LOCK_ATTEMPTS) throw error;
    }
  }
  await session.query('set lock_wait_timeout = 60');
}

/**
 * Objects attached to the old table (triggers, indexes, checks, defaults, partitions and so on) would be lost with it.
 * Such a table stays and receives the new rows instead.
 * @throws ConfigurationError when foreign keys of other tables reference it, which prevents both.
 */
export async function hasAttachments(session: MysqlSession, { schema, table }: Swap): Promise<boolean> {
  const here = `table_schema = ${literal(schema)} and table_name = ${literal(table)}`;
  const json =
    session.version.flavor === 'MariaDB'
      ? `(select count(*) from information_schema.check_constraints where constraint_schema = ${literal(schema)}
          and table_name = ${literal(table)} and check_clause not like 'json_valid(%)')`
      : `(select count(*) from information_schema.table_constraints where ${here} and constraint_type = 'CHECK')`;
  const { rows } = await session.query(
    `select (select count(*) from information_schema.key_column_usage
              where referenced_table_schema = ${literal(schema)} and referenced_table_name = ${literal(table)}
                and not (${here})),
            (select count(*) from information_schema.triggers
              where event_object_schema = ${literal(schema)} and event_object_table = ${literal(table)})
          + (select count(*) from information_schema.statistics where ${here} and index_name <> 'PRIMARY')
          + (select count(*) from information_schema.table_constraints where ${here} and constraint_type = 'FOREIGN KEY')
          + (select count(*) from information_schema.columns where ${here}
              and (extra not in ('', 'DEFAULT_GENERATED') or column_comment <> '' or coalesce(column_default, 'NULL') <> 'NULL'))
          + (select count(*) from information_schema.tables where ${here}
              and (table_comment <> '' or create_options like '%partitioned%'))
          + ${json}`,
  );
  const [[referenced, attached] = []] = rows;
  if (referenced !== '0') {
    throw new ConfigurationError(
      'table_is_referenced',
      `Foreign keys of other tables reference ${schema}.${table}, so it cannot be overwritten. Drop them or use append_dedup`,
    );
  }
  return attached !== '0';
}
