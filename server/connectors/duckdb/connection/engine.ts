import type { DuckDBConnection, DuckDBInstance, DuckDBResultReader } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { literal, MEMORY_LIMIT } from '../../kits/duckdb/instance.ts';
import { duckdb } from '../../kits/duckdb/package.ts';
import type { SqlSession } from '../../kits/sql/dialect.ts';
import { duckDbError, type Place } from './failures.ts';

/** The file and what DuckDB keeps beside it. */
const SUFFIXES = ['', '.wal', '.wal.checkpoint', '.wal.recovery'];

/** The attached database's name in statements. */
export const DATABASE = 'db';

/** An engine in memory that can reach one file and nothing else: views of a file may try to read others. */
export class Engine {
  private constructor(
    private readonly instance: DuckDBInstance,
    readonly connection: DuckDBConnection,
    private readonly at: { path: string; spill: string },
  ) {}

  /** `spill`: a folder for what does not fit into memory, made when it is needed and removed at the end. */
  static async open(path: string, spill: string): Promise<Engine> {
    const instance = await duckdb().DuckDBInstance.create(':memory:', {
      memory_limit: MEMORY_LIMIT,
      threads: '1',
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      temp_directory: spill,
    });
    const connection = await instance.connect();
    const allowed = SUFFIXES.map((suffix) => literal(path + suffix)).join(', ');
    await connection.run(`SET TimeZone = 'UTC'; SET allowed_paths = [${allowed}]; SET enable_external_access = false`);
    return new Engine(instance, connection, { path, spill });
  }

  async attach(readOnly: boolean): Promise<void> {
    await this.connection.run(
      `ATTACH ${literal(this.at.path)} AS ${DATABASE} (TYPE duckdb${readOnly ? ', READ_ONLY' : ''})`,
    );
  }

  /** Writes what is in the log into the file and lets go of it. */
  async detach(): Promise<void> {
    await this.connection.run(`DETACH ${DATABASE}`);
  }

  /** Another connection, on which names without a database are the file's, as its views have them. */
  async connect(): Promise<DuckDBConnection> {
    const connection = await this.instance.connect();
    await connection.run(`USE ${DATABASE}`);
    return connection;
  }

  async close(): Promise<void> {
    this.connection.closeSync();
    this.instance.closeSync();
    await rm(this.at.spill, { recursive: true, force: true });
  }
}

export type Value = string | null;

/** What the SQL kit works on. Errors come as DuckDB throws them. */
export const sessionOf = (connection: DuckDBConnection, place: Place): SqlSession => ({
  async query(text) {
    const reader = await connection.runAndReadAll(text);
    return { rows: textRows(reader), count: reader.rowsChanged };
  },
  translate: (error) => duckDbError(error, place),
});

const textRows = (reader: DuckDBResultReader): Value[][] =>
  reader.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));

/** Rows of a short answer, every value as text. */
export async function query(connection: DuckDBConnection, text: string): Promise<Value[][]> {
  return textRows(await connection.runAndReadAll(text));
}

/** Rows that a statement changed. */
export async function execute(connection: DuckDBConnection, text: string): Promise<number> {
  return (await connection.run(text)).rowsChanged;
}
