import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import { atEnd } from './at-end.ts';
import { fastFolder } from './fast-folder.ts';
import { limitHangs } from './hangs.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';

let started: Promise<{ server: EmbeddedPostgres; dataDir: string }> | null = null;

/**
 * URL of a database on the test run's PostgreSQL: the server at TEST_DATABASE_URL (a superuser's URL) when set, else an
 * ephemeral embedded one that this process starts at the first call and that ends with it.
 */
export async function testServerUrl(database: string): Promise<string> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) {
    const url = new URL(given);
    url.pathname = `/${database}`;
    return url.href;
  }
  started ??= start();
  return (await started).server.url(database);
}

/** Stops the server that this process started, if it did. */
export async function stopTestServer(): Promise<void> {
  const running = started;
  started = null;
  if (!running) return;
  const { server, dataDir } = await running;
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function start() {
  atEnd(stopTestServer);
  return startServer();
}

async function startServer() {
  const dataDir = mkdtempSync(join(tmpdir(), 'data-pipelines-test-'));
  const clusters = join(fastFolder(), 'data-pipelines-clusters');
  return { server: await startEmbeddedPostgres({ dataDir, clusters, ephemeral: true }), dataDir };
}

export interface OwnServer {
  url(database: string): string;
  stop(): Promise<void>;
}

/**
 * A server for the tests of one file. On the shared one a new replication slot waits for every transaction that is open
 * there, and tests of frozen servers and killed workers hold theirs for up to a minute.
 */
export async function startOwnServer(): Promise<OwnServer> {
  const { server, dataDir } = await startServer();
  return {
    url: (database) => server.url(database),
    async stop() {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A folder for the tests of one file; deleted after them. */
export function temporaryFolder(): string {
  limitHangs();
  const folder = mkdtempSync(join(tmpdir(), 'data-pipelines-test-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
