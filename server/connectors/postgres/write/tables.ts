import type { WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../contract/errors.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import type { PgSession } from '../connection/session.ts';
import { columnList, identifier, literal, relation } from '../connection/sql.ts';
import type { Column, Target } from './target.ts';
import { columnType } from '../connection/types.ts';

export interface ExistingTable {
  oid: string;
  /** Of pg_class: `r` table, `p` partitioned table. */
  kind: string;
  /** Column to type, as format_type() writes it. */
  types: Map<string, string>;
}

/** Needs an empty search path, so that types of the system are the only ones without a schema. */
export async function findTable(session: PgSession, schema: string, table: string): Promise<ExistingTable | null> {
  const { rows } = await session.query(
    `select c.oid, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod)
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where n.nspname = $1 and c.relname = $2 order by a.attnum`,
    [schema, table],
  );
  const [first] = rows;
  if (!first) return null;
  const [oid, kind] = first;
  if (kind !== 'r' && kind !== 'p') {
    throw new ConfigurationError('not_a_table', `${schema}.${table} exists and is no table that could be written to`);
  }
  return { oid: oid!, kind, types: new Map(rows.filter((row) => row[2] !== null).map((row) => [row[2]!, row[3]!])) };
}

/** Adds what the target has more, nullable: rows that are there have no value for it. */
export async function addMissingColumns(
  session: PgSession,
  target: WriteTarget & { schema: string },
  table: ExistingTable,
) {
  const missing = target.columns.filter(({ name }) => !table.types.has(name));
  if (missing.length === 0) return;
  const additions = missing.map((column) => `add column ${identifier(column.name)} ${columnType(column)}`);
  await session.query(`alter table ${relation(target.schema, target.table)} ${additions.join(', ')}`, [], {
    slow: true,
  });
  for (const column of missing) table.types.set(column.name, columnType(column));
}

const definitions = (columns: readonly Column[]) =>
  columns.map(({ name, type }) => `${identifier(name)} ${type}`).join(', ');

export async function createTable(session: PgSession, target: Target, options: { name: string; primaryKey: boolean }) {
  const key =
    options.primaryKey && target.primary_key.length ? `, primary key (${columnList(target.primary_key)})` : '';
  const parts = `${definitions(target.typed)}${target.mode === 'soft_delete' ? `, ${DELETION}` : ''}${key}`;
  await session.query(`create table ${relation(target.schema, options.name)} (${parts})`);
}

const DELETION = `${identifier(DELETED_AT)} timestamp with time zone`;

/** What soft_delete marks rows in. */
export async function addDeletionColumn(session: PgSession, target: WriteTarget & { schema: string }) {
  await session.query(`alter table ${relation(target.schema, target.table)} add column if not exists ${DELETION}`);
}

/** Emptied by each commit, gone with the session. `sequence` keeps the order of arrival, `change` what happened. */
export async function createStage(
  session: PgSession,
  target: Target,
  options: { name: string; sequence: string; change: string },
) {
  const key = new Set(target.primary_key);
  const columns = target.typed.map(
    ({ name, type }) => `${identifier(name)} ${type}${key.has(name) ? ' not null' : ''}`,
  );
  // Numbers taken one by one cost an eighth of the COPY.
  await session.query(
    `create temporary table if not exists ${identifier(options.name)} (${columns.join(', ')},
       ${identifier(options.change)} text,
       ${identifier(options.sequence)} bigint generated always as identity (cache 1000)) on commit delete rows`,
  );
}

/**
 * A merge needs a unique index on exactly the key; an existing table without one gets it.
 * @throws ConfigurationError when the rows that are there are not unique by the key.
 */
export async function ensureUniqueKey(
  session: PgSession,
  target: WriteTarget & { schema: string },
  table: ExistingTable,
) {
  const names = target.primary_key.map(literal).join(', ');
  const { rows } = await session.query(
    `select 1 from pg_index i
      where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
        and array(select a.attname::text from pg_attribute a where a.attrelid = i.indrelid
                   and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1]) order by 1) =
            array(select unnest(array[${names}]::text[]) order by 1)
        and i.indnkeyatts = ${target.primary_key.length}`,
    [table.oid],
  );
  if (rows.length > 0) return;
  const on = `${relation(target.schema, target.table)} (${columnList(target.primary_key)})`;
  try {
    await session.query(`create unique index on ${on}`, [], { slow: true });
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    throw new ConfigurationError(
      'key_not_unique',
      `${target.table} has rows with the same ${target.primary_key.join(', ')}, so rows cannot be merged into it by this key`,
    );
  }
}
