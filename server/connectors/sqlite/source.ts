import type { Database } from 'bun:sqlite';
import { ReadingDigester } from '../kits/digest/reading-digester.ts';
import { datasetsCheck, datasetStream } from '../kits/sql/datasets.ts';
import {
  type Batch,
  type CheckResult,
  defineSource,
  type ReadRequest,
  type StreamSchema,
} from '../contract/connector.ts';
import { describeApart, describeStreamApart, readApart } from './query-subprocess.ts';
import { describeStream, discoverStreams, isDescribedAtOnce, isStoredTable, tablesOf } from './catalog.ts';
import { type Context, identifier, once } from './database.ts';
import { checkDataset } from './datasets.ts';
import { compareFileOrigins } from '../kits/sql/cursors/file-origin.ts';
import { findOrigin } from './origin.ts';
import { comesRowByRow, readRows } from './read.ts';
import { keepSnapshot } from './shared-snapshot.ts';
import { SqliteSourceConfig } from './settings.ts';

export const sqliteSource = defineSource<SqliteSourceConfig>({
  type: 'source',
  name: 'sqlite',
  display_name: 'SQLite',
  description: 'Tables and views of an SQLite database in the folder for files of this service',
  category: 'database',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none'],
  offline: true,
  capabilities: { datasets: true },
  supported_sync_modes: ['full_refresh', 'incremental'],
  // SQLite compares values of different kinds in its own ways: the engine filters as it does everywhere else.
  pushdown: { masking: [], filters: false },
  config: SqliteSourceConfig,
  check: (ctx) => once(ctx, (database) => checkStreams(ctx, database)),
  discover: async (ctx) => [
    ...(await once(ctx, (database) => discoverStreams(ctx, database))),
    ...(await datasetStreams(ctx)),
  ],
  describe,
  describeDataset: async (ctx, dataset) => datasetStream(dataset, await describeApart(ctx, dataset)),
  read,
  digest: async (ctx, comparison) => ReadingDigester.ofSource(comparison, (request) => read(ctx, request)),
  keepSnapshot,
  keeps_snapshot_in_process: true,
  origin: { find: findOrigin, compare: compareFileOrigins },
  estimate: (ctx, request) => once(ctx, async (database) => estimatedRows(database, request)),
});

async function describe(ctx: Context, stream: StreamSchema): Promise<StreamSchema | null> {
  const isQuick = await once(ctx, async (database) => isDescribedAtOnce(database, stream));
  return isQuick ? once(ctx, (database) => describeStream(ctx, database, stream)) : describeStreamApart(ctx, stream);
}

async function* read(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  yield* request.snapshot || (await comesRowByRow(ctx, request)) ? readRows(ctx, request) : readApart(ctx, request);
}

async function datasetStreams(ctx: Context): Promise<StreamSchema[]> {
  const streams: StreamSchema[] = [];
  for (const dataset of ctx.datasets ?? []) streams.push(datasetStream(dataset, await describeApart(ctx, dataset)));
  return streams;
}

async function checkStreams(ctx: Context, database: Database): Promise<CheckResult> {
  const { datasets = [] } = ctx;
  for (const dataset of datasets) await checkDataset(ctx, database, dataset);
  const count = tablesOf(database).length;
  const version = database.query('select sqlite_version()').values()[0]?.[0];
  const tables = count === 0 ? 'There is no table or view' : `${count} tables and views can be read`;
  return {
    checks: [
      { title: 'Database', status: 'passed', message: `SQLite ${String(version)}` },
      ...datasetsCheck(datasets),
      { title: 'Tables', status: count === 0 ? 'failed' : 'passed', message: tables },
    ],
  };
}

/** The highest rowid is found at once, a count only by reading all. Null where there are none, as in views and queries. */
function estimatedRows(database: Database, { stream }: ReadRequest): number | null {
  if (stream.dataset_sql !== undefined || !isStoredTable(database, stream.name)) return null;
  try {
    const row = database.query(`select max(t.rowid) from ${identifier(stream.name)} t`).values()[0];
    return row?.[0] == null ? null : Math.max(0, Number(row[0]));
  } catch {
    return null;
  }
}
