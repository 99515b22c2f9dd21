import { afterEach, beforeEach } from 'bun:test';
import { join } from 'node:path';
import type { Batch, ConnectorContext, Writer, WriteTarget } from '../../server/connectors/define.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import type { DuckDbDestinationConfig } from '../../server/connectors/duckdb/settings.ts';
import { ConnectorError } from '../../server/connectors/errors.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { contextOf } from './fixtures.ts';
import { column } from './postgres-support.ts';

const COLUMNS = [column('id', 'integer'), column('name', 'string'), column('at', 'timestamp_tz')];
export let place: Awaited<ReturnType<typeof duckDbFolder>>;
let writers: Writer[] = [];
/** Call it at the top of a file of tests: each has a folder of its own, and its writers are closed after it. */
export function duckDbTarget() {
  beforeEach(async () => {
    place = await duckDbFolder();
  });
  afterEach(async () => {
    for (const writer of writers) await writer.abort();
    writers = [];
    await place.close();
  });
}

export const target = (more: Partial<WriteTarget> = {}): WriteTarget => ({
  schema: null,
  table: 't',
  columns: COLUMNS,
  primary_key: ['id'],
  cursor_column: null,
  mode: 'append',
  connection_id: 'connection',
  stream_id: 'stream',
  connection_run_id: 'run',
  stream_run_id: 'first',
  fence: 1,
  state_version: 0,
  ...more,
});
const context = (signal?: AbortSignal) =>
  contextOf(
    duckDbDestination,
    { filesRoot: place.filesRoot },
    { settings: { path: 'data.duckdb' }, signal },
  ) as ConnectorContext<DuckDbDestinationConfig>;
export const open = async (more: Partial<WriteTarget> = {}, signal?: AbortSignal) => {
  const writer = await duckDbDestination.open(context(signal), target(more));
  writers.push(writer);
  return writer;
};
export const load = async (more: Partial<WriteTarget>, ...batches: Batch[]) => {
  const writer = await open(more);
  for (const batch of batches) await writer.write(batch);
  return writer.finish(null);
};
export const row = (id: number | null, name: string | null, at: string | null = null) => [
  id === null ? null : String(id),
  name,
  at,
];
export const sql = (...statements: string[]) => onDuckDb(join(place.filesRoot, 'data.duckdb'), ...statements);
export const content = () => sql('select id, name from t order by id, name');
export const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof ConnectorError ? error : new Error(String(error))),
  );
export const codeOf = async (work: Promise<unknown>) => {
  const error = await errorOf(work);
  return error instanceof ConnectorError ? `${error.type} ${error.code}` : String(error);
};
