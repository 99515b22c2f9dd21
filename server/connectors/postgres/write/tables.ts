import { ConfigurationError } from '../../contract/errors.ts';
import type { Stage } from '../../kits/sql/stage.ts';
import { addUniqueKey } from '../../kits/sql/tables.ts';
import type { PlacedTarget } from '../../kits/sql/target.ts';
import type { PgSession } from '../connection/session.ts';
import { columnList, identifier, literal, relation } from '../connection/sql.ts';
import { postgres } from './dialect.ts';
import type { PgTable, PgTarget } from './target.ts';

/** Needs an empty search path, so that only types of the system have no schema. */
export async function findTable(session: PgSession, schema: string, table: string): Promise<PgTable | null> {
  const { rows } = await session.query(
    `select c.oid, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod)
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where n.nspname = ${literal(schema)} and c.relname = ${literal(table)} order by a.attnum`,
  );
  const [first] = rows;
  if (!first) return null;
  const [oid, kind] = first;
  if (kind !== 'r' && kind !== 'p') {
    throw new ConfigurationError(
      'not_a_table',
      `${schema}.${table} is not a table. Rows can only be written to tables`,
    );
  }
  return { oid: oid!, kind, types: new Map(rows.filter((row) => row[2] !== null).map((row) => [row[2]!, row[3]!])) };
}

/** Emptied by each commit, gone with the session. */
export async function createStage(session: PgSession, target: PgTarget, stage: Stage): Promise<void> {
  const key = new Set(target.primary_key);
  const columns = target.typed.map(
    ({ name, type }) => `${identifier(name)} ${type}${key.has(name) ? ' not null' : ''}`,
  );
  // Numbers taken one by one cost an eighth of the COPY.
  await session.query(
    `create temporary table if not exists ${stage.relation} (${columns.join(', ')}, ${stage.change} text,
       ${stage.sequence} bigint generated always as identity (cache 1000)) on commit delete rows`,
  );
}

/**
 * A merge needs a unique index on exactly the key; an existing table without one gets it.
 * @throws ConfigurationError when several rows have the same key.
 */
export async function ensureUniqueKey(session: PgSession, target: PlacedTarget, table: PgTable): Promise<void> {
  if (target.mode === 'update') return;
  const names = target.primary_key.map(literal).join(', ');
  const { rows } = await session.query(
    `select 1 from pg_index i
      where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
        and array(select a.attname::text from pg_attribute a where a.attrelid = i.indrelid
                   and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1]) order by 1) =
            array(select unnest(array[${names}]::text[]) order by 1)
        and i.indnkeyatts = ${target.primary_key.length}`,
    { values: [table.oid] },
  );
  if (rows.length > 0) return;
  const on = `${relation(target.schema, target.table)} (${columnList(target.primary_key)})`;
  await addUniqueKey({ session, dialect: postgres }, target, `create unique index on ${on}`);
}
