import type { DuckDBConnection } from '@duckdb/node-api';
import { type CheckResult, type ConnectorContext, defineSource, type ReadRequest } from '../define.ts';
import { discoverStreams } from './catalog.ts';
import { DATABASE, query } from './engine.ts';
import { duckDbError } from './failures.ts';
import { existingFile, reading } from './file-access.ts';
import { readRows } from './read.ts';
import { DuckDbSourceConfig } from './settings.ts';
import { literal } from './sql.ts';

type Context = ConnectorContext<DuckDbSourceConfig>;

export const duckDbSource = defineSource<DuckDbSourceConfig>({
  type: 'source',
  name: 'duckdb',
  display_name: 'DuckDB',
  description: 'Tables and views of a DuckDB database in the folder for files of this service',
  category: 'warehouse',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none'],
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: DuckDbSourceConfig,
  check: (ctx) => once(ctx, (connection) => checkTables(ctx, connection)),
  possibleValues: {
    schemas: (ctx) =>
      once(ctx, async (connection) => {
        const streams = await discoverStreams(connection, []);
        return Object.fromEntries(streams.map(({ namespace }) => [namespace ?? '', namespace ?? '']));
      }),
  },
  discover: (ctx) => once(ctx, (connection) => discoverStreams(connection, ctx.config.schemas)),
  describe: (ctx, stream) =>
    once(ctx, async (connection) => {
      const found = await discoverStreams(connection, [stream.namespace ?? 'main']);
      return found.find(({ name }) => name === stream.name) ?? null;
    }),
  read: readRows,
  estimate: (ctx, request) => once(ctx, (connection) => estimatedRows(connection, request)),
});

async function checkTables(ctx: Context, connection: DuckDBConnection): Promise<CheckResult> {
  const [[version] = []] = await query(connection, 'select version()');
  const streams = await discoverStreams(connection, ctx.config.schemas);
  const found = new Set(streams.map(({ namespace }) => namespace));
  const missing = ctx.config.schemas.filter((schema) => !found.has(schema));
  const problem =
    missing.length > 0
      ? `There is no table in ${missing.join(', ')}`
      : streams.length === 0
        ? 'There is no table or view'
        : null;
  return {
    checks: [
      { title: 'Database', status: 'passed', message: `DuckDB ${version}` },
      {
        title: 'Tables',
        status: problem ? 'failed' : 'passed',
        message: problem ?? `${streams.length} tables and views can be read`,
      },
    ],
  };
}

/** Null for views. */
async function estimatedRows(connection: DuckDBConnection, { stream }: ReadRequest): Promise<number | null> {
  const [row] = await query(
    connection,
    `select estimated_size from duckdb_tables() where database_name = '${DATABASE}'
        and schema_name = ${literal(stream.namespace ?? 'main')} and table_name = ${literal(stream.name)}`,
  );
  return row?.[0] == null ? null : Number(row[0]);
}

async function once<Result>(ctx: Context, work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
  const file = await existingFile(ctx);
  try {
    const results = reading(ctx, file, async function* (connection) {
      yield await work(connection);
    });
    for await (const result of results) return result;
    throw new Error('the database was not opened');
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw duckDbError(error, file);
  }
}
