import { openDatabase } from '../../../db/index.ts';
import { openRoots } from '../../../db/pinned-key.ts';
import type { Db } from '../../../db/types.ts';
import type { Config } from '../../platform/config.ts';
import type { Roots } from '../../platform/secrets.ts';

/** The control database of the settings, for a command. Without DATABASE_URL the embedded one is used or started. */
export async function withDatabase<Result>(config: Config, work: (url: string) => Promise<Result>): Promise<Result> {
  const url = config.DATABASE_OWNER_URL ?? config.DATABASE_URL;
  if (url !== null) return work(url);
  const { startEmbeddedPostgres } = await import('../../../db/embedded.ts');
  const server = await startEmbeddedPostgres({ dataDir: config.DATA_DIR });
  try {
    return await work(server.url('pipelines'));
  } finally {
    await server.stop();
  }
}

/** The same with an open connection. */
export const inControlDatabase = <Result>(config: Config, work: (db: Db) => Promise<Result>): Promise<Result> =>
  withDatabase(config, async (url) => {
    const database = openDatabase(url, { max: 1 });
    try {
      return await work(database.db);
    } finally {
      await database.close();
    }
  });

/** The root keys that SECRET_KEY opens. */
export const readRoots = (config: Config): Promise<Roots> =>
  inControlDatabase(config, (db) => openRoots(db, config.SECRET_KEY));
