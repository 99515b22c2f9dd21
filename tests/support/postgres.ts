import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import { atEnd } from './at-end.ts';
import { fastFolder } from './fast-folder.ts';
import { limitHangs } from './hangs.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';

/** The servers of a test run, by the setting that has the URL of one that runs already. */
const SHARED = { any: 'TEST_DATABASE_URL', logs: 'TEST_LOG_DATABASE_URL' };
type Shared = keyof typeof SHARED;

const started = new Map<Shared, ReturnType<typeof startServer>>();

/**
 * URL of a database on the test run's PostgreSQL: the server at TEST_DATABASE_URL (a superuser's URL) when set, else an
 * ephemeral embedded one that this process starts at the first call and that ends with it.
 */
export const testServerUrl = (database: string): Promise<string> => sharedUrl('any', database);

/**
 * The test run's server for sources whose log is followed (TEST_LOG_DATABASE_URL). A new replication slot waits for every
 * transaction that is open on its server, and tests of frozen servers and killed workers hold theirs for a minute and
 * more: none of them may use this one.
 */
export async function logServer(): Promise<Pick<OwnServer, 'url'>> {
  const url = new URL(await sharedUrl('logs', 'postgres'));
  return { url: (database) => new URL(`/${database}`, url).href };
}

/** The settings by which other processes find the servers of this one. */
export async function sharedServers(): Promise<Record<string, string>> {
  const kinds = Object.keys(SHARED) as Shared[];
  const urls = await Promise.all(kinds.map(async (kind) => [SHARED[kind], await sharedUrl(kind, 'postgres')] as const));
  return Object.fromEntries(urls);
}

async function sharedUrl(kind: Shared, database: string): Promise<string> {
  const given = process.env[SHARED[kind]];
  if (given) return new URL(`/${database}`, given).href;
  if (started.size === 0) atEnd(stopTestServers);
  const running = started.get(kind) ?? startServer();
  started.set(kind, running);
  return (await running).server.url(database);
}

/** Stops the servers that this process started. */
export async function stopTestServers(): Promise<void> {
  const running = [...started.values()];
  started.clear();
  for (const one of running) await stop(await one);
}

interface Started {
  server: EmbeddedPostgres;
  dataDir: string;
}

async function stop({ server, dataDir }: Started): Promise<void> {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function startServer(): Promise<Started> {
  const dataDir = mkdtempSync(join(tmpdir(), 'data-pipelines-test-'));
  const clusters = join(fastFolder(), 'data-pipelines-clusters');
  return { server: await startEmbeddedPostgres({ dataDir, clusters, ephemeral: true }), dataDir };
}

export interface OwnServer {
  url(database: string): string;
  stop(): Promise<void>;
}

/** A server for the tests of one file, which change its settings, take its slots or hold transactions open. */
export async function startOwnServer(): Promise<OwnServer> {
  const own = await startServer();
  return { url: (database) => own.server.url(database), stop: () => stop(own) };
}

/** A folder for the tests of one file; deleted after them. */
export function temporaryFolder(): string {
  limitHangs();
  const folder = mkdtempSync(join(tmpdir(), 'data-pipelines-test-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
