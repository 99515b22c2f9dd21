import type { DuckDBConnection } from '@duckdb/node-api';
import { duckdb } from './package.ts';

/** Limit of one reader or writer before it spills to disk. The process needs about 300 MB in addition. */
const MEMORY_LIMIT = '256MB';

export interface DuckDb {
  connection: DuckDBConnection;
  close(): void;
}

/** Opens an in-memory engine without network access. @param spillTo folder for data that does not fit into memory */
export async function openDuckDb(spillTo: string | null = null): Promise<DuckDb> {
  const instance = await duckdb().DuckDBInstance.create(':memory:', {
    memory_limit: MEMORY_LIMIT,
    threads: '1',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    temp_directory: spillTo ?? '',
  });
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  return {
    connection,
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** SQL that makes a date or timestamp of a cell. DuckDB writes "(BC)" behind the date. */
export function momentSql(cell: string, type: string): string {
  const bc = `regexp_replace(${cell}, '^(\\S+)(.*) BC$', '\\1 (BC)\\2')`;
  return `CAST(CASE WHEN ${cell} LIKE '% BC' THEN ${bc} ELSE ${cell} END AS ${type})`;
}

/** SQL that gives the bytes of a cell. `unhex` takes an odd number of digits, too, as other bytes. */
export function binarySql(cell: string): string {
  const isHex = `starts_with(${cell}, '\\x') AND length(${cell}) % 2 = 0`;
  // No digits, so that `unhex` fails. `error` is volatile, which TRY does not accept.
  return `unhex(CASE WHEN ${isHex} THEN substr(${cell}, 3) ELSE 'no binary data: ' || left(${cell}, 100) END)`;
}
