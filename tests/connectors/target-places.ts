import { join } from 'node:path';
import type { Cell, ConnectorContext, Writer, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import type { DuckDbDestinationConfig } from '../../server/connectors/duckdb/connection/settings.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { onDuckDb } from './duckdb-places.ts';
import { contextOf } from './fixtures.ts';
import { destinationConfig as mysqlContext, mysqlDatabase } from './mysql-support.ts';
import { destinationConfig as postgresContext, twoDatabases } from './postgres-support.ts';

/** A database that supports every write mode. */
export interface TargetPlace {
  name: string;
  skip: boolean;
  open(target: WriteTarget, signal?: AbortSignal): Promise<Writer>;
  /** The rows of a query, cells as texts. */
  rows(query: string): Promise<Cell[][]>;
  run(statement: string): Promise<unknown>;
  quoted(name: string): string;
  /** The message for a second row without `id`, its key. */
  missingKey: RegExp;
  /** Whether CREATE TABLE is transactional. */
  makesTablesInTransactions: boolean;
}

type Value = string | number | boolean | Date | null;
const asTexts = (found: Iterable<object>): Cell[][] =>
  [...found].map((one) => Object.values(one).map((value: Value) => (value === null ? null : String(value))));

const withSignal = <Config>(ctx: ConnectorContext<Config>, signal = ctx.signal): ConnectorContext<Config> => ({
  ...ctx,
  signal,
});

/** Call at the top of a file. */
export function targetPlaces(): TargetPlace[] {
  const sides = twoDatabases();
  const mysql = mysqlDatabase();
  const filesRoot = temporaryFolder();
  const path = 'data.duckdb';
  const onFile = (...statements: string[]) => onDuckDb(join(filesRoot, path), ...statements);
  return [
    {
      name: 'postgres',
      skip: false,
      open: (target, signal) =>
        postgresDestination.open(withSignal(postgresContext(sides.destination).ctx, signal), target),
      rows: async (query) => asTexts(await sides.destination.sql.unsafe(query)),
      run: (statement) => sides.destination.sql.unsafe(statement),
      quoted: (name) => `"${name}"`,
      missingKey: /row 2, column id/,
      makesTablesInTransactions: true,
    },
    {
      name: 'mysql',
      skip: mariaDbMissing !== null,
      open: (target, signal) => mysqlDestination.open(withSignal(mysqlContext(mysql).ctx, signal), target),
      rows: async (query) => asTexts(await mysql.sql(query)),
      run: (statement) => mysql.sql(statement),
      quoted: (name) => `\`${name}\``,
      missingKey: /'id' at row 2/,
      makesTablesInTransactions: false,
    },
    {
      name: 'duckdb',
      skip: false,
      open: (target, signal) => {
        const ctx = contextOf(duckDbDestination, { filesRoot }, { settings: { path }, signal });
        return duckDbDestination.open(ctx as ConnectorContext<DuckDbDestinationConfig>, target);
      },
      rows: onFile,
      run: onFile,
      quoted: (name) => `"${name}"`,
      missingKey: /: row 2 has no id, which is part of its key$/,
      makesTablesInTransactions: true,
    },
  ];
}
