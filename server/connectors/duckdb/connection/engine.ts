import type { DuckDBConnection, DuckDBInstance, DuckDBResultReader } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { literal } from '../../kits/duckdb/instance.ts';
import { duckdb } from '../../kits/duckdb/package.ts';
import type { SqlSession } from '../../kits/sql/dialect.ts';
import { duckDbError, isOutOfMemory, type Place } from './failures.ts';

/** The file and what DuckDB keeps beside it. */
const SUFFIXES = ['', '.wal', '.wal.checkpoint', '.wal.recovery'];

/** The attached database's name in statements. */
export const DATABASE = 'db';

/** What an engine uses before it spills to disk. It keeps what it has read or written until then. */
const MEMORY_LIMIT = 128_000_000;
const GROWTH = 1.5;
/** Of the machine, or of the container that limits the process. */
const MAX_SHARE_OF_MEMORY = 0.5;

/** An engine in memory that can reach one file and nothing else: views of a file may try to read others. */
export class Engine {
  #limit = MEMORY_LIMIT;

  private constructor(
    private readonly instance: DuckDBInstance,
    readonly connection: DuckDBConnection,
    private readonly at: { path: string; spill: string },
  ) {}

  /** `spill`: a folder for what does not fit into memory, made when it is needed and removed at the end. */
  static async open(path: string, spill: string): Promise<Engine> {
    const instance = await duckdb().DuckDBInstance.create(':memory:', {
      memory_limit: bytes(MEMORY_LIMIT),
      threads: '1',
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      temp_directory: spill,
    });
    const connection = await instance.connect();
    const allowed = SUFFIXES.map((suffix) => literal(path + suffix)).join(', ');
    // A commit writes the file at once. Through a log, wide rows would take three times as long and twice the memory.
    await connection.run("SET wal_autocheckpoint = '0KB'; SET auto_checkpoint_skip_wal_threshold = 0");
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

  /**
   * Runs `work` again with a higher limit as long as it runs out of memory: DuckDB works on 2,048 rows at a time, which
   * must fit however wide they are, and neither the rows of a file nor what a merge needs of them are known before.
   */
  async withMemory<Result>(work: () => Promise<Result>): Promise<Result> {
    while (true) {
      try {
        return await work();
      } catch (error) {
        if (!isOutOfMemory(error) || !(await this.raiseLimit())) throw error;
      }
    }
  }

  /** False: the engine has all that it may have. */
  async raiseLimit(): Promise<boolean> {
    const raised = this.#limit * GROWTH;
    if (raised > MAX_SHARE_OF_MEMORY * Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY))
      return false;
    await this.connection.run(`SET memory_limit = '${bytes(raised)}'`);
    this.#limit = raised;
    return true;
  }

  async close(): Promise<void> {
    this.connection.closeSync();
    this.instance.closeSync();
    await rm(this.at.spill, { recursive: true, force: true });
  }
}

const bytes = (count: number) => `${Math.floor(count)}B`;

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
