import type { Partition } from '../../contract/connector.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';

export interface Table {
  namespace: string;
  name: string;
}

/** Condition for the row `p` of pg_class and its namespace `n`. */
export const named = ({ namespace, name }: Table) =>
  `n.nspname = ${literal(namespace)} and p.relname = ${literal(name)}`;

/**
 * The partitions that hold rows. The catalog has no times, but its rows have the transactions that wrote them: the entry of a
 * system column is as old as the partition, and that of its place in the tree as old as its membership.
 */
export async function partitionsOf(session: PgSession, table: Table): Promise<Partition[]> {
  const { rows } = await session.query(
    `with recursive tree (relid, member_age) as (
       select i.inhrelid, age(i.xmin) from pg_inherits i join pg_class p on p.oid = i.inhparent
         join pg_namespace n on n.oid = p.relnamespace where ${named(table)}
       union all
       select i.inhrelid, least(tree.member_age, age(i.xmin)) from tree join pg_inherits i on i.inhparent = tree.relid)
     select c.oid, n.nspname || '.' || c.relname, pg_relation_filenode(c.oid), tree.member_age < age(a.xmin),
            pg_relation_filenode(c.oid) <> c.oid
       from tree join pg_class c on c.oid = tree.relid and c.relkind <> 'p'
       join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attname = 'ctid'
      order by n.nspname, c.relname`,
  );
  return rows.map(([id, name, file, attached, rewritten]) => ({
    id: id!,
    name: name!,
    file: file ?? '',
    attached: attached === 't',
    // The first file of a table has the number of the table.
    rewritten: rewritten === 't',
  }));
}

/** The partitioned tables with rows that the server does not log: each partition is unlogged, or of another server, by itself. */
export async function tablesWithUnloggedParts(session: PgSession): Promise<Table[]> {
  const { rows } = await session.query(
    `with recursive parent (id) as (
       select i.inhparent from pg_class c join pg_inherits i on i.inhrelid = c.oid
        where c.relispartition and (c.relpersistence <> 'p' or c.relkind = 'f')
       union
       select i.inhparent from parent join pg_inherits i on i.inhrelid = parent.id)
     select n.nspname, p.relname from parent join pg_class p on p.oid = parent.id
       join pg_namespace n on n.oid = p.relnamespace`,
  );
  return rows.map(([namespace, name]) => ({ namespace: namespace!, name: name! }));
}
