import type { DuckDBConnection } from '@duckdb/node-api';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type PublishGroup,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { safeSegment } from '../kits/files/stores/local-files.ts';
import { openTarget, type TargetDatabase } from '../kits/sql/open-target.ts';
import { discardReady, type PlacedGroup, READY, resumeReady } from '../kits/sql/publish/ready.ts';
import { sampleTable } from '../kits/sql/table-access.ts';
import { tableDefinition } from '../kits/sql/tables.ts';
import { checkTarget, type ExistingTable } from '../kits/sql/target.ts';
import { Engine, execute, sessionOf } from './connection/engine.ts';
import { duckDbError, type Place } from './connection/failures.ts';
import { fileToWrite, once, writing } from './connection/file-access.ts';
import { DuckDbDestinationConfig } from './connection/settings.ts';
import { identifier, relation } from './connection/sql.ts';
import { digestDestination } from './digest/sides.ts';
import { duckdb } from './write/dialect.ts';
import { publishTables } from './write/publish.ts';
import { assertUniqueKey, findTable } from './write/tables.ts';
import { duckDbWriter, inTransaction } from './write/writer.ts';

type Context = ConnectorContext<DuckDbDestinationConfig>;

export const duckDbDestination = defineDestination<DuckDbDestinationConfig>({
  type: 'destination',
  name: 'duckdb',
  display_name: 'DuckDB',
  description: 'Tables of a DuckDB database in the folder for files of this service',
  category: 'warehouse',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none'],
  offline: true,
  supported_destination_sync_modes: ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'],
  applies_changes: true,
  replaces_windows: true,
  keeps_rejects: true,
  config: DuckDbDestinationConfig,
  names: duckdb.names,
  locate: ({ path = '', schema = 'main' }) => ({ store: posix.normalize(path), schema }),
  defineTable: ({ schema = 'main' }, table) => tableDefinition(duckdb, table, table.schema ?? schema),
  sampleTable: (ctx, { schema, ...sample }) =>
    once(ctx, ({ connection, place }) =>
      sampleTable(
        { session: sessionOf(connection, place), dialect: duckdb },
        { ...sample, schema: schema ?? ctx.config.schema },
      ),
    ),
  digest: digestDestination,
  check,
  open,
  publish: (ctx, group) => inFile(ctx, group, publishTables),
  discard: (ctx, group) =>
    inFile(ctx, group, (connection, place, placed) =>
      discardReady({ session: sessionOf(connection, place), dialect: duckdb }, placed),
    ),
});

/** Runs `work` in one transaction of the file. */
async function inFile(
  ctx: Context,
  group: PublishGroup,
  work: (connection: DuckDBConnection, place: Place, group: PlacedGroup) => Promise<void>,
): Promise<void> {
  const placed = { ...group, schema: group.schema ?? ctx.config.schema };
  const place = await fileToWrite(ctx);
  await withEngine(ctx, { place, spill: 'publish' }, async (engine) => {
    const { connection } = engine;
    await writing(ctx, { engine, ...place }, () => inTransaction(connection, () => work(connection, place, placed)));
    await engine.close();
  });
}

/** Creates a table and rolls back. A missing file is not created. */
async function check(ctx: Context, at?: { schema: string | null }): Promise<CheckResult> {
  const place = await fileToWrite(ctx);
  if (!place.exists) {
    return { checks: [{ title: 'Database', status: 'passed', message: 'The first run creates the file' }] };
  }
  const schema = at?.schema ?? ctx.config.schema;
  const probe = relation(schema, `_pipeline_check_${crypto.randomUUID()}`);
  await withEngine(ctx, { place, spill: 'check' }, async (engine) => {
    try {
      await writing(ctx, { engine, ...place }, async () => {
        await execute(engine.connection, 'BEGIN');
        await execute(engine.connection, `CREATE SCHEMA IF NOT EXISTS db.${identifier(schema)}`);
        await execute(engine.connection, `CREATE TABLE ${probe} (id INTEGER)`);
        await execute(engine.connection, 'ROLLBACK');
      });
    } finally {
      await engine.close();
    }
  });
  return { checks: [{ title: 'Database', status: 'passed', message: 'Tables can be created and written' }] };
}

async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  const placed = { ...target, schema: target.schema ?? ctx.config.schema };
  checkTarget(duckdb, placed);
  const place = await fileToWrite(ctx);
  const own = safeSegment(target.stream_id);
  const writer = await withEngine(ctx, { place, spill: `${own}.${target.fence}` }, async (engine) => {
    const { connection } = engine;
    const database: TargetDatabase<ExistingTable> = {
      session: sessionOf(connection, place),
      dialect: duckdb,
      findTable: findTable.bind(null, connection),
      ensureUniqueKey: async (one, _, { known }) => {
        if (!known) await assertUniqueKey(connection, one);
      },
      atomically: (work) => work(),
      createsForWindows: false,
      extraState: [READY],
      resume: (state, at) => resumeReady({ session: sessionOf(connection, place), dialect: duckdb }, state, at),
    };
    const opening = () => inTransaction(connection, () => openTarget(database, placed));
    return duckDbWriter(ctx, { engine, place, ...(await writing(ctx, { engine, ...place }, opening)) });
  });
  await removeSpills(place, own, target.fence);
  return writer;
}

/** The engine stays open unless `work` throws. */
async function withEngine<Result>(
  ctx: Context,
  { place, spill }: { place: Place; spill: string },
  work: (engine: Engine) => Promise<Result>,
): Promise<Result> {
  ctx.signal.throwIfAborted();
  const folder = dirname(place.path);
  const engine = await Engine.open(place.path, join(folder, `.${basename(place.path)}.${spill}.spill`));
  try {
    return await work(engine);
  } catch (error) {
    await engine.close();
    ctx.signal.throwIfAborted();
    throw duckDbError(error, place);
  }
}

/** Removes what crashed attempts of this stream spilled. */
async function removeSpills({ path }: Place, own: string, fence: number): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    const isOwn = name.startsWith(`.${basename(path)}.${own}.`) && name.endsWith('.spill');
    if (isOwn && !name.endsWith(`.${fence}.spill`))
      await rm(join(dirname(path), name), { recursive: true, force: true });
  }
}
