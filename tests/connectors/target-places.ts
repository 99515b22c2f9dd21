import { join } from 'node:path';
import type { Cell, ConnectorContext, Writer, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import type { DuckDbDestinationConfig } from '../../server/connectors/duckdb/connection/settings.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { StreamsFailed } from '../../server/connectors/contract/replication.ts';
import type { PostgresDestinationConfig } from '../../server/connectors/postgres/connection/settings.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { onDuckDb } from './duckdb-places.ts';
import { destinationConfig as mysqlContext, mysqlDatabase } from './mysql-support.ts';
import { destinationConfig as postgresContext, twoDatabases } from './postgres-support.ts';
import { contextOf } from './places.ts';

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

/** The first stream of a writer that commits several. */
async function openTogether(ctx: ConnectorContext<PostgresDestinationConfig>, target: WriteTarget): Promise<Writer> {
  const alone = async <Result>(work: () => Promise<Result>): Promise<Result> =>
    work().catch((error: unknown) => {
      throw error instanceof StreamsFailed ? error.failures.get(0) : error;
    });
  const warn = () => {};
  const writer = await alone(() => postgresDestination.openReplication!(ctx, [{ target, warn }]));
  return {
    ...writer.streams[0]!,
    write: (batch) => alone(() => writer.write(0, batch)),
    checkpoint: async (state) => (await alone(() => writer.commit([state], true))).get(0)!,
    finish: async (state) => (await alone(() => writer.finish([state])))[0]!,
    abort: () => writer.abort(),
  };
}

/** Call at the top of a file. @param more also a writer that commits several tables of PostgreSQL together */
export function targetPlaces(more: { together?: boolean } = {}): TargetPlace[] {
  const sides = twoDatabases();
  const mysql = mysqlDatabase();
  const filesRoot = temporaryFolder();
  const path = 'data.duckdb';
  const onFile = (...statements: string[]) => onDuckDb(join(filesRoot, path), ...statements);
  const onPostgres = (side: keyof typeof sides): Omit<TargetPlace, 'name' | 'open'> => ({
    skip: false,
    rows: async (query) => asTexts(await sides[side].sql.unsafe(query)),
    run: (statement) => sides[side].sql.unsafe(statement),
    quoted: (name) => `"${name}"`,
    missingKey: /row 2, column id/,
    makesTablesInTransactions: true,
  });
  const together: TargetPlace = {
    ...onPostgres('source'),
    name: 'postgres, several tables together',
    open: (target, signal) => openTogether(withSignal(postgresContext(sides.source).ctx, signal), target),
  };
  return [
    {
      ...onPostgres('destination'),
      name: 'postgres',
      open: (target, signal) =>
        postgresDestination.open(withSignal(postgresContext(sides.destination).ctx, signal), target),
    },
    ...(more.together ? [together] : []),
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
