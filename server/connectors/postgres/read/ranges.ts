import type { ReadRequest } from '../../contract/connector.ts';
import { conditions } from './select.ts';
import type { PgSession } from '../connection/session.ts';
import { relation } from '../connection/sql.ts';

/** A connection more has to be worth its while. */
const BYTES_PER_READER = 16 * 1024 * 1024;
/** The smallest range of a table is one of so many for each reader. */
const FINEST = 16;

export interface Ranges {
  /** Connections that are worth it, two at least. */
  readers: number;
  /** Conditions, in SQL. Every row fulfils exactly one of them. */
  conditions: string[];
}

/**
 * Cuts a table into ranges of its pages. Unlike ranges of a key they need no key, come evenly out of two numbers of the
 * catalog, and each is one sequential piece of the file (a TID range scan, from PostgreSQL 14 on). Of a partitioned
 * table every partition is cut at the same pages. Null: to be read as a whole, since it is small, no table of pages,
 * or filtered (each range would do the filter's index scan anew).
 */
export async function rangesOf(session: PgSession, request: ReadRequest, readers: number): Promise<Ranges | null> {
  const { namespace, name, dataset_sql } = request.stream;
  if (readers < 2 || namespace === null || dataset_sql !== undefined || conditions(request).length > 0) return null;
  const { rows } = await session.query(TABLE, { values: [relation(namespace, name)] });
  const [suitable, bytes, pages] = rows[0] ?? [];
  if (suitable !== 't') return null;
  const worthwhile = Math.min(readers, Math.floor(Number(bytes) / BYTES_PER_READER));
  return worthwhile < 2 ? null : { readers: worthwhile, conditions: pageRanges(Number(pages), worthwhile) };
}

/**
 * Large ranges first, ever smaller ones after them, each half of a reader's share of what is left: few statements, and
 * all readers end at about the same time though they begin at different ones and pages are filled unevenly. The last
 * range has no end: the table may have grown since its pages were counted.
 */
export function pageRanges(pages: number, readers: number): string[] {
  const smallest = Math.max(1, Math.ceil(pages / (readers * FINEST)));
  const starts = [0];
  for (let start = 0, left = pages; left > smallest; starts.push(start)) {
    const size = Math.max(smallest, Math.ceil(left / (2 * readers)));
    start += size;
    left -= size;
  }
  return starts.map((start, at) => {
    const end = starts[at + 1];
    return `ctid >= '(${start},0)'${end === undefined ? '' : ` and ctid < '(${end},0)'`}`;
  });
}

const TABLE = `
  select current_setting('server_version_num')::int >= 140000 and bool_and(relkind = 'r' and amname = 'heap'),
         sum(pg_table_size(c.oid)), max(pg_relation_size(c.oid) / current_setting('block_size')::int)
    from pg_class c left join pg_am a on a.oid = c.relam
   where (c.oid = $1::regclass and c.relkind <> 'p')
      or c.oid in (select relid from pg_partition_tree($1::regclass) where isleaf)`;
