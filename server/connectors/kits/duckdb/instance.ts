import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';

/** What one reader or writer may take; its process keeps about 300 MB beside it. */
const MEMORY_LIMIT = '256MB';

export interface DuckDb {
  connection: DuckDBConnection;
  close(): void;
}

/** An engine of its own, that never reaches for the network. `spillTo`: a folder for what does not fit into memory. */
export async function openDuckDb(spillTo: string | null = null): Promise<DuckDb> {
  const instance = await DuckDBInstance.create(':memory:', {
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
