import type { ReadRequest } from '../../contract/connector.ts';
import { conditions } from './select.ts';
import type { PgSession } from '../connection/session.ts';
import { literal, relation } from '../connection/sql.ts';

/** Smallest share of a table that is worth another connection. */
const BYTES_PER_READER = 16 * 1024 * 1024;
/** Bounds the size of the smallest range. */
const MAX_RANGES_PER_READER = 16;

export interface Ranges {
  /** Useful number of connections, at least two. */
  readers: number;
  /** Conditions in SQL. Every row matches exactly one. */
  conditions: string[];
}

/** How a full read goes through a table. */
export interface ReadPlan {
  /** It does nothing but read pages: no view or query of a user computes its rows, no filter drops them. */
  steady: boolean;
  /** Null: read as a whole. */
  ranges: Ranges | null;
}

/**
 * Splits a table into ranges of pages. Unlike key ranges, they need no key, are even by two numbers of the catalog, and
 * each is one sequential part of the file (a TID range scan, from PostgreSQL 14). All partitions of a partitioned table
 * are split at the same pages. A table is read as a whole if it is small, has no pages, or is filtered (each range
 * would repeat the filter's index scan).
 */
export async function planRead(session: PgSession, request: ReadRequest, readers: number): Promise<ReadPlan> {
  const { namespace, name, dataset_sql } = request.stream;
  if (namespace === null || dataset_sql !== undefined || conditions(request).length > 0) {
    return { steady: false, ranges: null };
  }
  const splits = readers >= 2;
  const table = literal(relation(namespace, name));
  const { rows } = await session.query(splits ? `${kindOf(table)}, ${pagesOf(table)}` : kindOf(table));
  const [steady, suitable, bytes, pages] = rows[0] ?? [];
  const worthwhile = suitable === 't' ? Math.min(readers, Math.floor(Number(bytes) / BYTES_PER_READER)) : 0;
  const ranges = worthwhile < 2 ? null : { readers: worthwhile, conditions: pageRanges(Number(pages), worthwhile) };
  return { steady: steady === 't', ranges };
}

/**
 * Starts with large ranges and halves a reader's share of the rest each time. This takes few statements, and all readers
 * finish at about the same time although they start at different times and pages are filled unevenly. The last range has
 * no end, because the table may have grown since its pages were counted.
 */
export function pageRanges(pages: number, readers: number): string[] {
  const smallest = Math.max(1, Math.ceil(pages / (readers * MAX_RANGES_PER_READER)));
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

const kindOf = (table: string) =>
  `select (select relkind in ('r', 'p', 'm') from pg_class where oid = ${table}::regclass)`;

/** Found by their OIDs: a condition on all tables would read the whole catalog. */
const pagesOf = (table: string) => `
         current_setting('server_version_num')::int >= 140000 and bool_and(relkind = 'r' and amname = 'heap'),
         sum(pg_table_size(c.oid)), max(pg_relation_size(c.oid) / current_setting('block_size')::int)
    from (select ${table}::regclass::oid as oid
          union select relid::oid from pg_partition_tree(${table}::regclass) where isleaf) part
    join pg_class c on c.oid = part.oid and c.relkind <> 'p'
    left join pg_am a on a.oid = c.relam`;
