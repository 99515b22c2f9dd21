import type { EnumLabel, Partition, StreamDetails } from '../../contract/connector.ts';
import type { Row } from '../connection/result.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';

interface Table {
  namespace: string;
  name: string;
}

/** Condition for the labels `e` of the type `t` of a column, or of its elements. */
export const OF_TYPE = 'e.enumtypid in (t.oid, t.typbasetype, t.typelem)';

/** @param columns rows of the query of columns */
export async function detailsOf(session: PgSession, table: Table, columns: Row[]): Promise<StreamDetails> {
  return {
    partitions: columns[0]?.[2] === 'p' ? await partitionsOf(session, table) : [],
    enum_labels: columns.some((row) => row[15] === 't') ? await enumLabels(session, table) : [],
  };
}

const named = ({ namespace, name }: Table) => `n.nspname = ${literal(namespace)} and p.relname = ${literal(name)}`;

/**
 * The partitions that hold rows. The catalog has no times, but its rows have the transactions that wrote them: the entry of a
 * system column is as old as the partition, and that of its place in the tree as old as its membership.
 */
async function partitionsOf(session: PgSession, table: Table): Promise<Partition[]> {
  const { rows } = await session.query(
    `with recursive tree (relid, member_age) as (
       select i.inhrelid, age(i.xmin) from pg_inherits i join pg_class p on p.oid = i.inhparent
         join pg_namespace n on n.oid = p.relnamespace where ${named(table)}
       union all
       select i.inhrelid, least(tree.member_age, age(i.xmin)) from tree join pg_inherits i on i.inhparent = tree.relid)
     select c.oid, n.nspname || '.' || c.relname, pg_relation_filenode(c.oid), tree.member_age < age(a.xmin)
       from tree join pg_class c on c.oid = tree.relid and c.relkind <> 'p'
       join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attname = 'ctid'
      order by n.nspname, c.relname`,
  );
  return rows.map(([id, name, file, attached]) => ({
    id: id!,
    name: name!,
    file: file ?? '',
    attached: attached === 't',
  }));
}

async function enumLabels(session: PgSession, table: Table): Promise<EnumLabel[]> {
  const { rows } = await session.query(
    `select e.oid, a.attname, e.enumlabel
       from pg_class p join pg_namespace n on n.oid = p.relnamespace
       join pg_attribute a on a.attrelid = p.oid and a.attnum > 0 and not a.attisdropped
       join pg_type t on t.oid = a.atttypid join pg_enum e on ${OF_TYPE}
      where ${named(table)} order by a.attnum, e.enumsortorder`,
  );
  return rows.map(([id, column, label]) => ({ id: id!, column: column!, label: label! }));
}
