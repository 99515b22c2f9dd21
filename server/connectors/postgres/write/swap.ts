import { ConfigurationError } from '../../contract/errors.ts';
import type { ChangedValues } from '../../cells/value-gate.ts';
import { changedByCopy } from '../../kits/sql/gate.ts';
import { adaptTable } from '../../kits/sql/tables.ts';
import type { PgSession } from '../connection/session.ts';
import { INDEX_MEMORY } from '../connection/sort-memory.ts';
import { columnList, derivedName, identifier, literal, relation } from '../connection/sql.ts';
import { postgres } from './dialect.ts';
import { lockTables } from './locks.ts';
import { findTable } from './tables.ts';
import type { PgTable, PgTarget } from './target.ts';
import { OVERRIDING } from './merge/overriding.ts';

/** `dropped`: bytes of the table that the commit deletes. */
interface Swapped {
  changed: ChangedValues;
  dropped: number;
}

/**
 * Replaces the old table by the new one, in the open transaction. The old one is locked only from here to the commit.
 * Its owner and grants are kept.
 *
 * Objects attached to the old table (views, indexes, triggers, policies, comments and so on) would be lost or would
 * prevent the drop. Such a table stays and receives the new rows instead: they are written a second time, and readers
 * wait meanwhile. Foreign keys of other tables prevent both.
 * @returns `changed`: values that the table that stays does not hold exactly
 */
export async function swapIn(session: PgSession, target: PgTarget, fresh: string): Promise<Swapped> {
  const old = await findTable(session, target.schema, target.table);
  let dropped = 0;
  if (old) {
    await lockTables(session, [target.relation]);
    const { referenced, attached, bytes } = await attachments(session, old);
    dropped = bytes;
    if (referenced) throw refuseReferenced(target);
    if (attached) {
      const changed = await prepareInPlace(session, target, { old, fresh });
      await session.query(`truncate ${target.relation}`, { slow: true });
      await insertFresh(session, target, fresh);
      return { changed, dropped: 0 };
    }
  }
  await replaceTable(session, target, { old, fresh });
  return { changed: {}, dropped };
}

/** Gives the new table its name, or its rows to a table that was created meanwhile, in the open transaction. */
export async function bringIn(session: PgSession, target: PgTarget, fresh: string): Promise<ChangedValues> {
  const old = await findTable(session, target.schema, target.table);
  if (!old) {
    await replaceTable(session, { ...target, primary_key: [] }, { old, fresh });
    return {};
  }
  const changed = await prepareInPlace(session, target, { old, fresh });
  await insertFresh(session, target, fresh);
  return changed;
}

/** The index is built after the rows are copied, which is faster. */
export async function addKey(session: PgSession, target: PgTarget, fresh: string): Promise<void> {
  if (target.primary_key.length === 0) return;
  const name = identifier(derivedName(fresh, '_pkey'));
  const key = `add constraint ${name} primary key (${columnList(target.primary_key)})`;
  session.ahead(INDEX_MEMORY);
  await session.query(`alter table ${relation(target.schema, fresh)} ${key}`, { slow: true });
}

type Replacement = { old: PgTable; fresh: string };

/** The old table, which must be locked, is dropped. The new one gets its name, owner and grants. */
export async function replaceTable(
  session: PgSession,
  target: PgTarget,
  { old, fresh }: { old: PgTable | null; fresh: string },
): Promise<void> {
  const freshRelation = relation(target.schema, fresh);
  const dropped = old ? [...(await rightsOf(session, old.oid, freshRelation)), `drop table ${target.relation}`] : [];
  const renamed = `alter table ${freshRelation} rename to ${identifier(target.table)}`;
  for (const statement of [...dropped, renamed]) session.ahead(statement);
  await renameKey(session, target, fresh);
}

/** Gives the old table the columns of the new one. @returns values that it does not hold exactly */
export async function prepareInPlace(
  session: PgSession,
  target: PgTarget,
  { old, fresh }: Replacement,
): Promise<ChangedValues> {
  const from = relation(target.schema, fresh);
  await adaptTable({ session, dialect: postgres }, target, old);
  return changedByCopy({ session, dialect: postgres }, target, { from, old, as: (type) => type });
}

/** Moves the rows of the new table into the old one. */
export async function insertFresh(session: PgSession, target: PgTarget, fresh: string): Promise<void> {
  const from = relation(target.schema, fresh);
  const columns = columnList(target.columns.map(({ name }) => name));
  await session.query(`insert into ${target.relation} (${columns}) ${OVERRIDING} select ${columns} from ${from}`, {
    slow: true,
  });
  await session.query(`drop table ${from}`);
}

/** What keeps a table from being dropped: foreign keys of other tables, and objects that would be lost with it. */
export async function attachments(
  session: PgSession,
  { oid, kind }: PgTable,
): Promise<{ referenced: boolean; attached: boolean; bytes: number }> {
  const { rows } = await session.query(
    `select
       exists (select from pg_constraint where contype = 'f' and confrelid = c.oid and conrelid <> c.oid),
       exists (select from pg_depend where refclassid = 'pg_class'::regclass and refobjid = c.oid
                and classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_policy'::regclass))
       or exists (select from pg_constraint where conrelid = c.oid and contype in ('c', 'f', 'u', 'x'))
       or exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal)
       or exists (select from pg_publication_rel where prrelid = c.oid)
       or exists (select from pg_inherits where inhrelid = c.oid or inhparent = c.oid)
       or exists (select from pg_index where indrelid = c.oid and not indisprimary)
       or exists (select from pg_statistic_ext where stxrelid = c.oid)
       or exists (select from pg_description where classoid = 'pg_class'::regclass and objoid = c.oid)
       or exists (select from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
                   and (attacl is not null or atthasdef or attidentity <> ''))
       or c.relrowsecurity or c.reloptions is not null or c.relreplident <> 'd' or c.relpersistence <> 'p'
       or c.reloftype <> 0,
       pg_total_relation_size(c.oid)
       from pg_class c where c.oid = $1::oid`,
    { values: [oid] },
  );
  const [[referenced, attached, bytes] = [null, null, null]] = rows;
  return { referenced: referenced === 't', attached: attached === 't' || kind === 'p', bytes: Number(bytes) };
}

export const refuseReferenced = ({ schema, table }: Pick<PgTarget, 'schema' | 'table'>) =>
  new ConfigurationError(
    'table_is_referenced',
    `Foreign keys of other tables reference ${schema}.${table}, so it cannot be overwritten. Drop them or use append_dedup`,
  );

/**
 * The new table starts with the schema's default privileges. These statements give it exactly those of the old one.
 */
async function rightsOf(session: PgSession, oid: string, fresh: string): Promise<string[]> {
  const role = (column: string) =>
    `case ${column} when 0 then 'public' else quote_ident(pg_get_userbyid(${column})) end`;
  const { rows } = await session.query(
    `select format('revoke all on table %s from %s', ${literal(fresh)}, ${role('a.grantee')})
       from pg_class c, aclexplode(c.relacl) a where c.oid = ${literal(fresh)}::regclass and a.grantee <> c.relowner
     union all
     select format('grant %s on table %s to %s%s', a.privilege_type, ${literal(fresh)}, ${role('a.grantee')},
                   case when a.is_grantable then ' with grant option' else '' end)
       from pg_class c, aclexplode(c.relacl) a where c.oid = $1::oid and a.grantee <> c.relowner
     union all
     select format('alter table %s owner to %s', ${literal(fresh)}, ${role('c.relowner')})
       from pg_class c where c.oid = $1::oid and pg_get_userbyid(c.relowner) <> current_user`,
    { values: [oid] },
  );
  return rows.map(([statement]) => statement!);
}

/** Cosmetic, so a name that is already taken is left alone. */
async function renameKey(session: PgSession, target: PgTarget, fresh: string): Promise<void> {
  if (target.primary_key.length === 0) return;
  const wanted = derivedName(target.table, '_pkey');
  const { rows } = await session.query(`select to_regclass(${literal(relation(target.schema, wanted))})`);
  if (rows[0]?.[0] !== null) return;
  const present = identifier(derivedName(fresh, '_pkey'));
  await session.query(`alter table ${target.relation} rename constraint ${present} to ${identifier(wanted)}`);
}
