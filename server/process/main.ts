import { type Config, ConfigError, environmentOf, isPortSet } from '../platform/config.ts';
import type { ServiceRole } from '../../db/service-role.ts';
import type { Deps } from '../deps.ts';
import { openLog } from '../platform/log.ts';
import { shrinkWhenIdle } from '../platform/memory/shrink-when-idle.ts';
import { readSettings } from '../platform/settings-by-reference.ts';
import { readWorkerFlags } from '../worker/worker-command.ts';
import type { Bootstrapped } from './bootstrap.ts';
import { OPERATOR_COMMANDS } from './commands/operator-commands.ts';
import { handleSignals, type Shutdown, SILENT_AT_END } from './shutdown.ts';
import { superviseWorker } from './supervise.ts';

// Each mode loads only what it runs, at its start: the worker needs no web server, the API no engine, and the supervisor
// of a worker nearly nothing.

const say = (line: string) => process.stdout.write(`${line}\n`);

/** End at once if the database cannot be reached. */
const NO_WAIT = '--no-wait';
/** A database that restarts, or that starts together with the service, is there within this time. */
const DATABASE_WAIT_MS = 60_000;

const waiting = (ms: number) => `. Waiting up to ${ms / 1000} s for it`;

interface Start {
  shutdown: Shutdown;
  /** How long a database that is away is waited for. */
  wait_ms: number;
}

/** Starts API, worker and, without DATABASE_URL, the embedded database (`all`); or the API or the worker alone. */
async function main(mode: string, flags: string[]): Promise<void> {
  const config = await readSettings();
  const shutdown = handleSignals(openLog(config.LOG_LEVEL));
  try {
    const start = { shutdown, wait_ms: flags.includes(NO_WAIT) ? 0 : DATABASE_WAIT_MS };
    if (mode === 'all') await runAll(config, start);
    else if (mode === 'api') await runApi(config, start);
    else if (mode === 'worker') await runWorkerMode(config, { shutdown, flags });
    else
      throw new ConfigError(
        `Unknown mode "${mode}". Use all, api, worker, ${Object.keys(OPERATOR_COMMANDS).join(', ')}`,
      );
  } catch (error) {
    if (!shutdown.isEnding()) complain(error);
    await shutdown.end(1);
  }
}

async function runAll(config: Config, start: Start): Promise<void> {
  const { shutdown } = start;
  const { startEmbeddedPostgres } = await import('../../db/embedded.ts');
  const own = { dataDir: config.DATA_DIR, log: openLog(config.LOG_LEVEL) };
  const embedded = config.DATABASE_URL === null ? startEmbeddedPostgres(own) : null;
  // Meanwhile the server starts on another processor.
  void loadServer().catch(() => {});
  // Registered before the server is up: a signal during the start must not leave it behind.
  if (embedded) shutdown.onEnd(async () => (await embedded).stop());
  const server = await embedded;
  const url = server?.service.url ?? requireUrl(config, 'all');
  const embeddedOwner = server && { ...server.service, url: server.url('pipelines') };
  const { deps, made, address } = await serve(config, { url, embeddedOwner, ...start });
  const { followWarehouse } = await import('./warehouse.ts');
  if (server) await followWarehouse(deps.db, server);
  const worker = superviseWorker({ env: environmentOf(config, url), log: deps.log });
  shutdown.onEnd(() => worker.stop());
  greet(config, { made, address });
  if (config.DEMO) {
    const { runDemo } = await import('./demo.ts');
    const api_key = made.api_key ?? (made.is_key_ended ? null : config.BOOTSTRAP_API_KEY);
    await runDemo({ db: deps.db, address, api_key, warehouse: server?.warehouse ?? null, say });
  }
}

async function runApi(config: Config, start: Start): Promise<void> {
  const { made, address } = await serve(config, { url: requireUrl(config, 'api'), ...start });
  greet(config, { made, address });
}

/** Supervises a worker process, or is one. */
async function runWorkerMode(config: Config, options: { shutdown: Shutdown; flags: string[] }): Promise<void> {
  const { shutdown } = options;
  const flags = readWorkerFlags(options.flags);
  const url = requireUrl(config, 'worker');
  if (flags.supervised) {
    const { runWorker } = await import('./run-worker.ts');
    return runWorker(config, { url, flags, shutdown });
  }
  const worker = superviseWorker({
    env: environmentOf(config, url),
    log: openLog(config.LOG_LEVEL, { role: 'supervisor' }),
    onNeverReady: ({ exit_code }) => void shutdown.end(exit_code ?? 1),
  });
  shutdown.onEnd(() => worker.stop());
}

async function serve(
  config: Config,
  options: Start & { url: string; embeddedOwner?: (ServiceRole & { url: string }) | null },
): Promise<{ deps: Deps; made: Bootstrapped; address: string }> {
  const { url, shutdown, wait_ms } = options;
  const { migrateDatabase } = await import('../../db/migrate.ts');
  const owner = options.embeddedOwner?.url ?? config.DATABASE_OWNER_URL ?? url;
  const migrating = migrateDatabase(owner, { wait_ms, onWait: (error) => complain(error, waiting(wait_ms)) });
  const [loaded] = await Promise.all([loadServer(), migrating]);
  const { closeDeps, createDeps, bootstrap, sealStoredSecrets, flushRefusals, createApp, warmConsole } = loaded;
  if (options.embeddedOwner) {
    const { prepareServiceRole } = await import('./prepare-service-role.ts');
    await prepareServiceRole(owner, options.embeddedOwner);
  }
  const deps = await createDeps(config, url, 'api');
  shutdown.onEnd(() => closeDeps(deps));
  // The embedded server must not be left behind.
  if (!options.embeddedOwner) shutdown.giveUpWhen(() => deps.database.untilUnresponsive(SILENT_AT_END));
  const made = await bootstrap(deps.db, { secrets: deps.secrets, config });
  await sealStoredSecrets(deps);
  shutdown.onEnd(() => flushRefusals(deps));
  const app = listenOn(createApp(deps), config);
  warmConsole(deps);
  const shrinking = shrinkWhenIdle();
  shutdown.onEnd(() => shrinking.stop());
  shutdown.onEnd(async () => {
    // Open responses get some time, but an endless download must not block the shutdown.
    await Promise.race([app.server?.stop(), Bun.sleep(5_000)]);
    await app.server?.stop(true);
  });
  const host = config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST;
  return { deps, made, address: `http://${host}:${app.server?.port}` };
}

/** What an API runs. To load it takes longer than to start the database. */
async function loadServer() {
  const [deps, bootstrap, secrets, refusals, app, console] = await Promise.all([
    import('../deps.ts'),
    import('./bootstrap.ts'),
    import('./seal-stored-secrets.ts'),
    import('../api/audit/refusals.ts'),
    import('../http/app.ts'),
    import('../http/console/routes.ts'),
  ]);
  return {
    createDeps: deps.createDeps,
    closeDeps: deps.closeDeps,
    bootstrap: bootstrap.bootstrap,
    sealStoredSecrets: secrets.sealStoredSecrets,
    flushRefusals: refusals.flushRefusals,
    createApp: app.createApp,
    warmConsole: console.warmConsole,
  };
}

function listenOn(app: ReturnType<typeof import('../http/app.ts').createApp>, { HOST, PORT }: Config) {
  try {
    return app.listen({ hostname: HOST, port: PORT });
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    if (!taken || isPortSet()) throw error;
    say(`Port ${PORT} is in use, so the service uses another one. Set PORT to select a port`);
    return app.listen({ hostname: HOST, port: 0 });
  }
}

function greet(config: Config, at: { made: Bootstrapped; address: string }): void {
  say(`Data pipelines at ${at.address} (ready after ${Math.round(process.uptime() * 10) / 10} s)`);
  say(`  Web console: ${at.address}/`);
  say(`  Documentation: ${at.address}/docs`);
  if (at.made.api_key)
    say(`  API key of ${config.BOOTSTRAP_EMAIL}, valid for 90 days, shown only now: ${at.made.api_key}`);
  else if (at.made.is_key_ended)
    say('  API key: BOOTSTRAP_API_KEY was revoked or replaced and stays invalid. Set a new value to restore access');
  else if (config.BOOTSTRAP_API_KEY) say('  API key: the value of BOOTSTRAP_API_KEY');
  else say('  API key: shown at the first start');
}

function requireUrl(config: Config, mode: string): string {
  if (config.DATABASE_URL !== null) return config.DATABASE_URL;
  throw new ConfigError(`DATABASE_URL must be set for "${mode}": only "all" starts the embedded PostgreSQL`);
}

/** No room on a disk, in a quota, or below a limit of the process. */
const DISK_IS_FULL = ['ENOSPC', 'EDQUOT', 'EFBIG'];

const SETTING_AT_FAULT: Record<string, string> = {
  EADDRINUSE: 'PORT is in use by another process',
  EADDRNOTAVAIL: 'HOST is not an address of this machine',
  EINPROGRESS: 'HOST cannot be resolved. Check the host name',
  ECONNREFUSED: 'DATABASE_URL: connection refused. Check host and port, and that PostgreSQL is running',
  ENOTFOUND: 'DATABASE_URL: host not found. Check the host name',
  CONNECT_TIMEOUT: 'DATABASE_URL: the host does not respond. Check host, port and firewall',
  '28P01': 'DATABASE_URL: password authentication failed. Check username and password',
  '3D000': 'DATABASE_URL: the database does not exist',
};

/** By name: their modules are loaded only by the modes that need them. */
const EXPECTED = ['ConfigError', 'EmbeddedPostgresError', 'MigrationError', 'BackupError'];

/** Prints one line for an error that the operator can fix, and the whole error otherwise. */
function complain(error: unknown, more = ''): void {
  const { code = '', message, stack, cause } = error as Error & { code?: string };
  const isExpected = EXPECTED.includes((error as Error).name) || DISK_IS_FULL.includes(code);
  const whole = [stack ?? String(error), ...(cause instanceof Error ? [`because: ${cause.message}`] : [])].join('\n');
  process.stderr.write(`${isExpected ? message : (SETTING_AT_FAULT[code] ?? whole)}${more}\n`);
}

/**
 * Runs the service, or a command for operators, from the command line: `[all|api|worker|…]` and flags. Exits with 1 if
 * the start fails.
 */
export async function runService([mode = 'all', ...flags]: string[]): Promise<void> {
  try {
    const command = OPERATOR_COMMANDS[mode];
    if (command) process.exit(await (await command())(await readSettings(), flags, say));
    await main(mode, flags);
  } catch (error) {
    complain(error);
    process.exit(1);
  }
}
