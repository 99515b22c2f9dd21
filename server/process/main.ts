import { EmbeddedPostgresError, startEmbeddedPostgres } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { type Bootstrapped, bootstrap } from './bootstrap.ts';
import { type Config, ConfigError, environmentOf, portIsChosen, readConfig } from '../platform/config.ts';
import { runDemo } from './demo.ts';
import { closeDeps, createDeps, type Deps } from '../deps.ts';
import { openLog } from '../platform/log.ts';
import { handleSignals, type Shutdown } from './shutdown.ts';
import { superviseWorker, UNTIL_STDIN_ENDS } from './supervise.ts';
import { followWarehouse } from './warehouse.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);

/** `bun server/main.ts [all|api|worker]`: API, worker and, without DATABASE_URL, the database too; or one part alone. */
async function main(mode: string, flags: string[]): Promise<void> {
  const config = readConfig();
  const shutdown = handleSignals(openLog(config.LOG_LEVEL));
  try {
    if (mode === 'all') await runAll(config, shutdown);
    else if (mode === 'api') await runApi(config, shutdown);
    else if (mode === 'worker') await runWorker(config, { shutdown, untilStdinEnds: flags.includes(UNTIL_STDIN_ENDS) });
    else throw new ConfigError(`"${mode}" is no part of the service: all, api or worker`);
  } catch (error) {
    if (!shutdown.isEnding()) complain(error);
    await shutdown.end(1);
  }
}

async function runAll(config: Config, shutdown: Shutdown): Promise<void> {
  const embedded = config.DATABASE_URL === null ? startEmbeddedPostgres({ dataDir: config.DATA_DIR }) : null;
  // Registered before it is there: a signal in the middle of the start must not leave a server behind.
  if (embedded) shutdown.onEnd(async () => (await embedded).stop());
  const server = await embedded;
  const url = server?.url('pipelines') ?? requireUrl(config, 'all');
  const { deps, made, address } = await serve(config, { url, shutdown });
  if (server) await followWarehouse(deps.db, server);
  const worker = superviseWorker({ env: environmentOf(config, url), log: deps.log });
  shutdown.onEnd(() => worker.stop());
  greet(config, { made, address });
  if (config.DEMO) {
    const api_key = made.api_key ?? config.BOOTSTRAP_API_KEY;
    await runDemo({ db: deps.db, address, api_key, warehouse: server?.warehouse ?? null, say });
  }
}

async function runApi(config: Config, shutdown: Shutdown): Promise<void> {
  const { made, address } = await serve(config, { url: requireUrl(config, 'api'), shutdown });
  greet(config, { made, address });
}

async function runWorker(config: Config, options: { shutdown: Shutdown; untilStdinEnds: boolean }): Promise<void> {
  const { shutdown } = options;
  if (options.untilStdinEnds) void untilStdinEnds().then(() => shutdown.end(0));
  const url = requireUrl(config, 'worker');
  await migrateDatabase(url);
  const deps = await createDeps(config, url, 'worker');
  shutdown.onEnd(() => closeDeps(deps));
  // Each part loads only what it runs: the worker has no use for the web server, nor the API for the engine's readers.
  const { startWorker } = await import('../worker/start-worker.ts');
  const worker = await startWorker(deps);
  shutdown.onEnd(() => worker.stop());
}

async function serve(
  config: Config,
  options: { url: string; shutdown: Shutdown },
): Promise<{ deps: Deps; made: Bootstrapped; address: string }> {
  const { url, shutdown } = options;
  await migrateDatabase(url);
  const deps = await createDeps(config, url, 'api');
  shutdown.onEnd(() => closeDeps(deps));
  const made = await bootstrap(deps.db, { secrets: deps.secrets, config });
  const { createApp } = await import('../http/app.ts');
  const { warmConsole } = await import('../http/console.ts');
  const app = listenOn(createApp(deps), config);
  warmConsole(deps);
  shutdown.onEnd(async () => {
    // Answers on their way get a moment; an endless download must not keep the service from ending.
    await Promise.race([app.server?.stop(), Bun.sleep(5_000)]);
    await app.server?.stop(true);
  });
  const host = config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST;
  return { deps, made, address: `http://${host}:${app.server?.port}` };
}

function listenOn(app: ReturnType<typeof import('../http/app.ts').createApp>, { HOST, PORT }: Config) {
  try {
    return app.listen({ hostname: HOST, port: PORT });
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    if (!taken || portIsChosen()) throw error;
    say(`Port ${PORT} is taken: another one was chosen. PORT decides it`);
    return app.listen({ hostname: HOST, port: 0 });
  }
}

function greet(config: Config, at: { made: Bootstrapped; address: string }): void {
  say(`Data pipelines at ${at.address} (ready after ${Math.round(process.uptime() * 10) / 10} s)`);
  say(`  web console: ${at.address}/`);
  say(`  documentation: ${at.address}/docs`);
  if (at.made.api_key)
    say(`  API key of ${config.BOOTSTRAP_EMAIL}, valid for 90 days, shown only now: ${at.made.api_key}`);
  else if (config.BOOTSTRAP_API_KEY) say('  API key: the one in BOOTSTRAP_API_KEY');
  else say('  API key: the one shown at the first start');
}

function requireUrl(config: Config, mode: string): string {
  if (config.DATABASE_URL !== null) return config.DATABASE_URL;
  throw new ConfigError(`DATABASE_URL must be set for "${mode}": only "all" starts the embedded PostgreSQL`);
}

async function untilStdinEnds(): Promise<void> {
  const reader = Bun.stdin.stream().getReader();
  while (!(await reader.read()).done) continue;
}

const SETTING_AT_FAULT: Record<string, string> = {
  EADDRINUSE: 'PORT is in use by another process',
  EADDRNOTAVAIL: 'HOST is no address of this machine',
  EINPROGRESS: 'HOST is not known',
  ECONNREFUSED: 'DATABASE_URL: nothing listens there',
  ENOTFOUND: 'DATABASE_URL: its host is not known',
  CONNECT_TIMEOUT: 'DATABASE_URL: its host does not answer',
  '28P01': 'DATABASE_URL: user name or password is wrong',
  '3D000': 'DATABASE_URL: there is no such database',
};

/** One line for what the operator can set right; the whole error for what he cannot. */
function complain(error: unknown): void {
  const { code = '', message, stack, cause } = error as Error & { code?: string };
  const isExpected = error instanceof ConfigError || error instanceof EmbeddedPostgresError;
  const whole = [stack ?? String(error), ...(cause instanceof Error ? [`because: ${cause.message}`] : [])].join('\n');
  process.stderr.write(`${isExpected ? message : (SETTING_AT_FAULT[code] ?? whole)}\n`);
}

/** The service from the command line: `[all|api|worker]` and flags. Ends the process with 1 when the start fails. */
export async function runService([mode = 'all', ...flags]: string[]): Promise<void> {
  try {
    await main(mode, flags);
  } catch (error) {
    complain(error);
    process.exit(1);
  }
}
