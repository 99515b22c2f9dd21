/**
 * `bun tests/bench/start.ts [rounds]`: from the start of `all` to ready, with the embedded database and a data folder that
 * is there; and from SIGTERM to the end, with the database running, stopped, and silent. Needs Debian's postgresql-15.
 */
import { join } from 'node:path';
import { type Cluster, startCluster } from './cluster.ts';
import { processorSeconds } from './processor-seconds.ts';
import { freePort } from '../support/free-port.ts';
import { watchOver } from '../support/watchdog.ts';
import { median, verdict } from './report.ts';
import { scratchFolder } from './scratch.ts';

const ROUNDS = Number(process.argv[2] ?? 5);
const GOAL = { ready: 1, end: 5 };
const MAIN = join(import.meta.dir, '../../server/main.ts');

const folder = scratchFolder();
const cold = await start({ DATA_DIR: folder });
await cold.end();
const ready: number[] = [];
const processor: number[] = [];
const ended: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const warm = await start({ DATA_DIR: folder });
  ready.push(warm.seconds);
  processor.push(warm.processor);
  ended.push(await warm.end());
}
console.log(`first start, with an empty data folder: ${cold.seconds.toFixed(2)} s`);
tell('start of all (warm) to ready', ready, GOAL.ready);
console.log(`  processor time until then: ${median(processor).toFixed(2)} s`);
tell('SIGTERM to the end', ended, GOAL.end);
tell('SIGTERM to the end, database stopped', await endsWithout((cluster) => cluster.stop()), GOAL.end);
tell('SIGTERM to the end, database silent', await endsWithout((cluster) => cluster.pause()), GOAL.end);

function tell(what: string, seconds: readonly number[], goal: number): void {
  const all = seconds.map((one) => one.toFixed(2)).join(' ');
  verdict(median([...seconds]) <= goal, `${what}: ${median([...seconds]).toFixed(2)} s (${all}), goal ${goal}`);
}

async function endsWithout(lose: (cluster: Cluster) => unknown): Promise<number[]> {
  const cluster = await startCluster();
  cluster.psql('postgres', 'create database control');
  try {
    const service = await start({ DATA_DIR: folder, DATABASE_URL: cluster.url('control') });
    await lose(cluster);
    return [await service.end()];
  } finally {
    await cluster.stop();
  }
}

/** Starts the service. `seconds`: until it was ready. */
async function start(env: Record<string, string>) {
  const PORT = String(await freePort());
  const settings = {
    ...process.env,
    PORT,
    DEMO: '0',
    LOG_LEVEL: 'silent',
    BOOTSTRAP_API_KEY: 'bench-administrator-key-0123456789abcdef',
    ...env,
  };
  const begun = performance.now();
  const child = Bun.spawn(['bun', MAIN, 'all'], { env: settings, stdout: 'ignore', stderr: 'ignore' });
  watchOver(child, '', 'TERM');
  const isReady = () =>
    fetch(`http://127.0.0.1:${PORT}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null || performance.now() - begun > 60_000)
      throw new Error('the service did not become ready');
    await Bun.sleep(5);
  }
  const seconds = (performance.now() - begun) / 1000;
  return {
    seconds,
    processor: processorSeconds(child.pid),
    async end(): Promise<number> {
      const asked = performance.now();
      child.kill('SIGTERM');
      await child.exited;
      return (performance.now() - asked) / 1000;
    },
  };
}
