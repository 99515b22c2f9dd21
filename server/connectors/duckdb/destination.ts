import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  type CheckResult,
  type ConnectorContext,
  defineDestination,
  type Writer,
  type WriteTarget,
} from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { safeSegment } from '../kits/files/stores/local-files.ts';
import { Engine, execute } from './connection/engine.ts';
import { duckDbError, type Place } from './connection/failures.ts';
import { fileToWrite, writing } from './connection/file-access.ts';
import { ensureRejectedTable } from './write/rejects.ts';
import { DuckDbDestinationConfig } from './connection/settings.ts';
import { identifier, relation } from './connection/sql.ts';
import { isMerge } from './write/stage.ts';
import { claimState, ensureStateTable } from './write/state-table.ts';
import { checkTarget, ensureUniqueKey, findTable, placedTarget } from './write/tables.ts';
import { DuckDbWriter, inTransaction } from './write/writer.ts';

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
  supported_destination_sync_modes: ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'],
  applies_changes: true,
  replaces_windows: true,
  keeps_rejects: true,
  config: DuckDbDestinationConfig,
  check,
  open,
});

/** Makes a table and takes it back; a file that is not there yet stays so. */
async function check(ctx: Context): Promise<CheckResult> {
  const place = await fileToWrite(ctx);
  if (!place.exists) {
    return { checks: [{ title: 'Database', status: 'passed', message: 'The file will be made by the first run' }] };
  }
  const probe = relation(ctx.config.schema, `_pipeline_check_${crypto.randomUUID()}`);
  await withEngine(ctx, { place, spill: 'check' }, async (engine) => {
    try {
      await writing(ctx, { engine, ...place }, async () => {
        await execute(engine.connection, 'BEGIN');
        await execute(engine.connection, `CREATE SCHEMA IF NOT EXISTS db.${identifier(ctx.config.schema)}`);
        await execute(engine.connection, `CREATE TABLE ${probe} (id INTEGER)`);
        await execute(engine.connection, 'ROLLBACK');
      });
    } finally {
      await engine.close();
    }
  });
  return { checks: [{ title: 'Database', status: 'passed', message: 'Tables can be made and written' }] };
}

/** Claims the stream and makes the table ready for its columns. A table that is not there comes with its first rows. */
async function open(ctx: Context, target: WriteTarget): Promise<Writer> {
  checkTarget(target);
  const placed = { ...target, schema: target.schema ?? ctx.config.schema };
  const place = await fileToWrite(ctx);
  const own = safeSegment(target.stream_id);
  const writer = await withEngine(ctx, { place, spill: `${own}.${target.fence}` }, async (engine) => {
    const { connection } = engine;
    return writing(ctx, { engine, ...place }, () =>
      inTransaction(connection, async () => {
        await ensureStateTable(connection, placed.schema);
        if (target.rejects) await ensureRejectedTable(connection, placed.schema);
        const state = await claimState(connection, placed);
        const resolved = await placedTarget(connection, placed);
        const found = await findTable(connection, placed.schema, target.table);
        if (found && isMerge(resolved) && !state.known) await ensureUniqueKey(connection, resolved);
        if (!found && target.mode === 'update') {
          throw new ConfigurationError(
            'table_missing',
            `There is no table ${placed.schema}.${target.table}: update changes rows of a table that is there`,
          );
        }
        return new DuckDbWriter(ctx, { engine, place, target: resolved, state });
      }),
    );
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

/** What attempts of this stream that crashed have spilled. */
async function removeSpills({ path }: Place, own: string, fence: number): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    const isOwn = name.startsWith(`.${basename(path)}.${own}.`) && name.endsWith('.spill');
    if (isOwn && !name.endsWith(`.${fence}.spill`))
      await rm(join(dirname(path), name), { recursive: true, force: true });
  }
}
