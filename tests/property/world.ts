import { join } from 'node:path';
import postgres from 'postgres';
import { createPlainDatabase, openTestDeps } from '../support/database.ts';
import { testMariaDb } from '../support/mariadb.ts';
import { createSpelling } from './canonical.ts';
import { duckDbPlace, mysqlPlace, postgresPlace, sqlitePlace } from './places.ts';
import type { World } from './run-case.ts';

/** The service's control database, and all databases as sources and destinations. */
export async function openWorld(): Promise<World & { close(): Promise<void> }> {
  const service = await openTestDeps({ role: 'worker', config: { RETRY_BACKOFF_SECONDS: 0 } });
  const root = join(service.deps.config.DATA_DIR, 'files');
  const database = await createPlainDatabase();
  const spelling = postgres(database.url, { max: 1, onnotice: () => {} });
  await createSpelling(spelling);
  const server = await testMariaDb();
  const sources = {
    postgres: await postgresPlace(),
    mysql: await mysqlPlace(server),
    duckdb: duckDbPlace(root),
    sqlite: sqlitePlace(root),
  };
  const targets = { postgres: await postgresPlace(), mysql: await mysqlPlace(server), duckdb: duckDbPlace(root) };
  const close = async () => {
    await Promise.all([...Object.values(sources), ...Object.values(targets)].map((place) => place.close()));
    await spelling.end();
    await database.drop();
    await service.close();
  };
  return { service, spelling, sources, targets, close };
}
