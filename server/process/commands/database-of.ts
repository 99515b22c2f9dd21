import type { Config } from '../../platform/config.ts';

/** The control database of the settings, for a command. Without DATABASE_URL the embedded one is used or started. */
export async function withDatabase<Result>(config: Config, work: (url: string) => Promise<Result>): Promise<Result> {
  if (config.DATABASE_URL !== null) return work(config.DATABASE_URL);
  const { startEmbeddedPostgres } = await import('../../../db/embedded.ts');
  const server = await startEmbeddedPostgres({ dataDir: config.DATA_DIR });
  try {
    return await work(server.url('pipelines'));
  } finally {
    await server.stop();
  }
}
