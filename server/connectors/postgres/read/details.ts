import type { EnumLabel, StreamDetails } from '../../contract/connector.ts';
import type { Row } from '../connection/result.ts';
import type { PgSession } from '../connection/session.ts';
import { named, partitionsOf, type Table } from './partitions.ts';

/** Condition for the labels `e` of the type `t` of a column, or of its elements. */
export const OF_TYPE = 'e.enumtypid in (t.oid, t.typbasetype, t.typelem)';

/** @param columns rows of the query of columns */
export async function detailsOf(session: PgSession, table: Table, columns: Row[]): Promise<StreamDetails> {
  return {
    partitions: columns[0]?.[2] === 'p' ? await partitionsOf(session, table) : [],
    enum_labels: columns.some((row) => row[15] === 't') ? await enumLabels(session, table) : [],
  };
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
