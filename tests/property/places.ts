import { Database } from 'bun:sqlite';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import mysql from 'mysql2/promise';
import postgres from 'postgres';
import { createPlainDatabase } from '../support/database.ts';
import type { MariaDb } from '../support/mariadb.ts';
import { postgresParameters } from '../support/resources.ts';
import type { Dialect } from './kinds.ts';

export type Texts = (string | null)[];

/** Drivers return some values as numbers. */
const asTexts = (rows: unknown): Texts[] =>
  (rows as (string | number | bigint | null)[][]).map((row) =>
    row.map((value) => (value === null ? null : String(value))),
  );

/** A database with the tables of one case at a time. */
export interface Place {
  dialect: Dialect;
  /** Of the connector, for the case that runs. */
  parameters(): Record<string, unknown>;
  run(...statements: string[]): Promise<void>;
  rows(query: string): Promise<Texts[]>;
  /** Types by column, as the database shows them; empty: there is no such table. */
  columns(table: string): Promise<Map<string, string>>;
  /** Removes everything, before the next case. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export async function postgresPlace(): Promise<Place> {
  const database = await createPlainDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {}, prepare: false });
  const parameters = postgresParameters(database.url);
  return {
    dialect: 'postgres',
    parameters: () => parameters,
    run: async (...statements) => void (await sql.unsafe(statements.join(';\n')).simple()),
    rows: async (query) => asTexts(await sql.unsafe(query).values()),
    columns: async (table) => {
      const found = await sql`select attname, format_type(atttypid, atttypmod) as type from pg_attribute
        where attrelid = to_regclass(quote_ident(${table})) and attnum > 0 and not attisdropped`;
      return new Map(found.map((row) => [row.attname as string, row.type as string]));
    },
    clear: async () => {
      await sql.unsafe(`drop schema public cascade; create schema public;
        create type property_kind as enum ('b', 'A', 'with space', 'it''s', 'é')`);
    },
    close: async () => {
      await sql.end();
      await database.drop();
    },
  };
}

export async function mysqlPlace(server: MariaDb): Promise<Place> {
  const { host, port, username, password } = server;
  let database = await server.database();
  const session = await mysql.createConnection({
    host,
    port,
    user: username,
    password,
    database,
    multipleStatements: true,
    charset: 'utf8mb4_bin',
  });
  await session.query("set time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'");
  const rows = async (query: string) => asTexts((await session.query({ sql: query, rowsAsArray: true }))[0]);
  return {
    dialect: 'mysql',
    parameters: () => ({ host, port, username, password, database, ssl_mode: 'disable' }),
    run: async (...statements) => void (await session.query(statements.join(';\n'))),
    rows,
    columns: async (table) => {
      const found = await rows(`select column_name, column_type from information_schema.columns
        where table_schema = '${database}' and table_name = '${table}'`);
      return new Map(found.map(([name, type]) => [String(name), String(type)]));
    },
    clear: async () => {
      await session.query(`drop database ${database}`);
      database = await server.database();
      await session.query(`use ${database}`);
    },
    close: () => session.end(),
  };
}

let files = 0;

/** Files are opened for each statement: DuckDB lets one instance write at a time. */
export function duckDbPlace(root: string): Place {
  mkdirSync(root, { recursive: true });
  let path = `property-${++files}.duckdb`;
  const onFile = async (statements: string[]): Promise<Texts[]> => {
    const instance = await DuckDBInstance.create(join(root, path));
    const connection = await instance.connect();
    try {
      await connection.run("set TimeZone = 'UTC'");
      for (const statement of statements.slice(0, -1)) await connection.run(statement);
      const reader = await connection.runAndReadAll(statements.at(-1) ?? 'select 1');
      return asTexts(reader.getRows());
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
  };
  const clear = async () => {
    rmSync(join(root, path), { force: true });
    path = `property-${++files}.duckdb`;
  };
  return {
    dialect: 'duckdb',
    parameters: () => ({ path }),
    run: async (...statements) => void (await onFile(statements)),
    rows: (query) => onFile([query]),
    columns: async (table) => {
      const found = await onFile([
        `select column_name, data_type from duckdb_columns() where table_name = '${table.replaceAll("'", "''")}'`,
      ]);
      return new Map(found.map(([name, type]) => [String(name), String(type)]));
    },
    clear,
    close: clear,
  };
}

export function sqlitePlace(root: string): Place {
  mkdirSync(root, { recursive: true });
  let path = '';
  let open: Database | null = null;
  const clear = async () => {
    open?.close();
    if (path) rmSync(join(root, path), { force: true });
    path = `property-${++files}.db`;
    open = new Database(join(root, path), { create: true, safeIntegers: true });
  };
  return {
    dialect: 'sqlite',
    parameters: () => ({ path }),
    run: async (...statements) => {
      for (const statement of statements) open!.run(statement);
    },
    rows: async (query) => asTexts(open!.query(query).values()),
    columns: async () => new Map(),
    clear,
    close: clear,
  };
}
