import { afterEach, beforeEach } from 'bun:test';
import { join } from 'node:path';
import type { Batch, ConnectorContext, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import type { DuckDbDestinationConfig } from '../../server/connectors/duckdb/connection/settings.ts';
import { ConnectorError } from '../../server/connectors/contract/errors.ts';
import { limitHangs } from '../support/hangs.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { writingTo } from './writing.ts';
import { contextOf } from './places.ts';

const path = 'data.duckdb';
const named = { table: 't', stream_id: 'stream' };

/** DuckDB for `writingTo`, but with a separate folder for each test, and always table `t`. */
export function duckDbTarget() {
  limitHangs();
  let place: Awaited<ReturnType<typeof duckDbFolder>>;
  beforeEach(async () => {
    place = await duckDbFolder();
  });
  const context = (signal?: AbortSignal) =>
    contextOf(
      duckDbDestination,
      { filesRoot: place.filesRoot },
      { settings: { path }, signal },
    ) as ConnectorContext<DuckDbDestinationConfig>;
  const writing = writingTo((target, signal) => duckDbDestination.open(context(signal), target));
  // After those of `writingTo`, which close what is open in the folder.
  afterEach(() => place.close());

  const sql = (...statements: string[]) => onDuckDb(join(place.filesRoot, path), ...statements);
  return {
    open: (more: Partial<WriteTarget> = {}, signal?: AbortSignal) => writing.open({ ...named, ...more }, signal),
    load: (more: Partial<WriteTarget>, ...batches: Batch[]) => writing.load({ ...named, ...more }, ...batches),
    check: (at: { schema: string }) => duckDbDestination.check(context(), at),
    sql,
    content: () => sql('select id, name from t order by id, name'),
    filesRoot: () => place.filesRoot,
  };
}

export const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'null',
    (error: unknown) => (error instanceof ConnectorError ? `${error.type} ${error.code}` : String(error)),
  );
