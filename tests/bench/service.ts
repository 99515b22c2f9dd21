import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from './cluster.ts';
import { processorSeconds } from './processor-seconds.ts';
import { scratchFolder } from './scratch.ts';
import { freePort } from '../support/free-port.ts';
import { watchOver } from '../support/watchdog.ts';

const KEY = 'bench-administrator-key-0123456789abcdef';

/** The whole service as a user starts it, in separate processes, on a free port, with a separate data folder. */
export interface Service {
  url: string;
  api_key: string;
  pid: number;
  data_dir: string;
  call<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** One more worker on the same queue, once it takes jobs. Needs DATABASE_URL in the service's environment. */
  startWorker(): Promise<{ stop(): Promise<void>; seconds(): number }>;
  /** Peak resident memory of the worker process so far, in MB; from the kernel. */
  workerPeakMb(): number;
  /** Processor seconds of the worker process so far. */
  seconds(): number;
  stop(): Promise<void>;
}

export async function startService(env: Record<string, string> = {}): Promise<Service> {
  const dataDir = scratchFolder();
  const port = await freePort();
  const main = join(import.meta.dir, '../../server/main.ts');
  const settings = {
    ...process.env,
    PORT: String(port),
    DATA_DIR: dataDir,
    BOOTSTRAP_API_KEY: KEY,
    DEMO: '0',
    LOG_LEVEL: 'warn',
    ...env,
  };
  const child = Bun.spawn(['bun', main, 'all'], { env: settings, stdout: 'ignore', stderr: 'inherit' });
  watchOver(child, '', 'TERM');
  const url = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + 60_000;
  while (
    !(await fetch(`${url}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    ))
  ) {
    if (Date.now() > deadline || child.exitCode !== null) throw new Error('the service did not become ready');
    await Bun.sleep(50);
  }
  return {
    url,
    api_key: KEY,
    pid: child.pid,
    data_dir: dataDir,
    async call<Answer>(method: string, path: string, body?: unknown) {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${KEY}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      return (answer.status === 204 ? null : await answer.json()) as Answer;
    },
    async startWorker() {
      const worker = Bun.spawn(['bun', main, 'worker'], {
        env: { ...settings, LOG_LEVEL: 'info' },
        stdout: 'ignore',
        stderr: 'pipe',
      });
      const log = worker.stderr.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
      let said = '';
      while (!said.includes('worker ready')) {
        const { done, value } = await log.next();
        if (done) throw new Error(`the worker did not start: ${said}`);
        said += value;
      }
      // A full pipe would block it.
      const drained = (async () => {
        while (!(await log.next()).done) continue;
      })();
      return {
        seconds: () => processorSeconds(worker.pid),
        async stop() {
          worker.kill('SIGTERM');
          await Promise.all([worker.exited, drained]);
        },
      };
    },
    workerPeakMb: () => peakMb(workerPid(child.pid)),
    seconds: () => processorSeconds(workerPid(child.pid)),
    async stop() {
      child.kill('SIGTERM');
      await child.exited;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The child of `parent` whose command line names the worker. */
export function workerPid(parent: number): number {
  const { stdout } = Bun.spawnSync(['pgrep', '-P', String(parent), '-f', 'main.ts worker']);
  return Number(stdout.toString().trim().split('\n')[0]);
}

export function peakMb(pid: number): number {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmHWM:\s+(\d+) kB/);
  return Math.round(Number(line?.[1] ?? 0) / 1024);
}

/** Until the streams of a new source are known: their discovery takes memory and time beside a run. */
export async function untilDiscovered(service: Service, source_id: string): Promise<void> {
  const path = `/account_connectors/${source_id}/discovery`;
  for (;;) {
    const { catalog_status } = await service.call<{ catalog_status: string }>('GET', path);
    if (catalog_status === 'ready') return;
    if (catalog_status === 'failed') throw new Error(`no discovery of ${source_id}`);
    await Bun.sleep(50);
  }
}

export interface Run {
  id: string;
  status: string;
  rows_loaded: number;
  queued_at: string;
  started_at: string;
  finished_at: string;
  error: { message: string } | null;
}

/**
 * Runs a connection to its end. `seconds`: from the POST to the instant at which the run became `succeeded`, by the
 * service's own record: a query every few milliseconds would take a quarter of a core from the measured run.
 */
export async function runToEnd(service: Service, connection_id: string): Promise<{ run: Run; seconds: number }> {
  const posted = Date.now();
  const id = await service.call<string>('POST', `/connections/${connection_id}/run`);
  for (;;) {
    const runs = await service.call<Run[]>('GET', `/connections/${connection_id}/runs?limit=1`);
    const run = runs.find((one) => one.id === id);
    if (run?.finished_at) {
      if (run.status !== 'succeeded') throw new Error(`run ${run.status}: ${run.error?.message}`);
      return { run, seconds: (Date.parse(run.finished_at) - posted) / 1000 };
    }
    await Bun.sleep(250);
  }
}

/** A connection that appends the rows of a local file to the table `run_t`. */
export async function connectFile(
  service: Service,
  { host, port, username, password }: Cluster,
  { path, stream }: { path: string; stream: string },
): Promise<string> {
  const end = async (connector_type: string, connector_name: string, parameters: object) => {
    const body = { name: connector_name, connector_type, connector_name, parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const database = { host, port, database: 'dst', username, password, ssl_mode: 'disable' };
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: `${path} to pg`,
    source_id: await end('source', 'file', { path }),
    destination_id: await end('destination', 'postgres', database),
    streams: [{ name: stream, sync_mode: 'full_refresh', destination_sync_mode: 'append', destination_table: 'run_t' }],
  });
  return made.id;
}
