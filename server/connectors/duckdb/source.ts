import { posix } from 'node:path';
import { datasetsCheck } from '../kits/sql/datasets.ts';
import { type CheckResult, type ConnectorContext, defineSource, type ReadRequest } from '../contract/connector.ts';
import { digestSource } from './digest/sides.ts';
import { discoverStreams } from './read/catalog.ts';
import { datasetStreams } from './read/datasets.ts';
import { DATABASE, query } from './connection/engine.ts';
import { once, type Opened } from './connection/file-access.ts';
import { compareFileOrigins } from '../kits/sql/cursors/file-origin.ts';
import { findOrigin } from './read/origin.ts';
import { readRows } from './read/read-rows.ts';
import { keepSnapshot } from './read/shared-snapshot.ts';
import { DuckDbSourceConfig } from './connection/settings.ts';
import { literal } from './connection/sql.ts';

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
  offline: true,
  capabilities: { datasets: true },
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: DuckDbSourceConfig,
  check: (ctx) => once(ctx, (opened) => checkTables(ctx, opened)),
  possibleValues: {
    schemas: (ctx) =>
      once(ctx, async ({ connection }) => {
        const streams = await discoverStreams(connection, []);
        return Object.fromEntries(streams.map(({ namespace }) => [namespace ?? '', namespace ?? '']));
      }),
  },
  discover: (ctx) =>
    once(ctx, async (opened) => [
      ...(await discoverStreams(opened.connection, ctx.config.schemas)),
      ...(await datasetStreams(opened, ctx.datasets)),
    ]),
  describe: (ctx, stream) =>
    once(ctx, async ({ connection }) => {
      const found = await discoverStreams(connection, [stream.namespace ?? 'main']);
      return found.find(({ name }) => name === stream.name) ?? null;
    }),
  describeDataset: (ctx, dataset) => once(ctx, async (opened) => (await datasetStreams(opened, [dataset]))[0]!),
  read: readRows,
  keepSnapshot,
  digest: digestSource,
  locks: ({ path = '' }) => posix.normalize(path),
  origin: { find: findOrigin, compare: compareFileOrigins },
  estimate: (ctx, request) => once(ctx, (opened) => estimatedRows(opened, request)),
});

async function checkTables(ctx: Context, opened: Opened): Promise<CheckResult> {
  const { connection } = opened;
  const [[version] = []] = await query(connection, 'select version()');
  const streams = await discoverStreams(connection, ctx.config.schemas);
  const datasets = await datasetStreams(opened, ctx.datasets);
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
      ...datasetsCheck(datasets),
      {
        title: 'Tables',
        status: problem ? 'failed' : 'passed',
        message: problem ?? `${streams.length} tables and views can be read`,
      },
    ],
  };
}

/** Null for views and queries. */
async function estimatedRows({ connection }: Opened, { stream }: ReadRequest): Promise<number | null> {
  if (stream.dataset_sql !== undefined) return null;
  const [row] = await query(
    connection,
    `select estimated_size from duckdb_tables() where database_name = '${DATABASE}'
        and schema_name = ${literal(stream.namespace ?? 'main')} and table_name = ${literal(stream.name)}`,
  );
  return row?.[0] == null ? null : Number(row[0]);
}
