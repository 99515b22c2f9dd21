/**
 * `bun tests/bench/cli.ts [rounds]`: from the start of the command line to its end, from the checkout and compiled,
 * against runtimes that do nothing. Rounds alternate, the median counts.
 */
import { join } from 'node:path';
import { median } from './report.ts';
import { scratchFolder } from './scratch.ts';

const ROUNDS = Number(process.argv[2] ?? 20);
const GOAL_MS = 150;
const MAIN = join(import.meta.dir, '../../client/cli/main.ts');
const folder = scratchFolder();
const program = join(folder, 'data-pipelines');
// Answers at once, so that only the command line is measured.
const service = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json([{ result: { data: [] } }]) });

const run = async (command: string[]): Promise<number> => {
  const start = performance.now();
  const env = { ...process.env, DATA_PIPELINES_URL: service.url.origin, DATA_PIPELINES_KEY: 'none' };
  const child = Bun.spawn(command, { env, stdout: 'ignore', stderr: 'inherit' });
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed`);
  return performance.now() - start;
};

try {
  await run([process.execPath, 'build', MAIN, '--compile', '--minify', '--outfile', program]);
  const measured: [name: string, command: string[]][] = [
    ['bun -e 0 (peer)', [process.execPath, '-e', '0']],
    ['node -e 0 (peer)', ['node', '-e', '0']],
    ['--help', [process.execPath, MAIN, '--help']],
    ['connections list', [process.execPath, MAIN, 'connections', 'list']],
    ['--help, compiled', [program, '--help']],
    ['connections list, compiled', [program, 'connections', 'list']],
  ];
  const times = new Map<string, number[]>(measured.map(([name]) => [name, []]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    // The first round fills the caches.
    for (const [name, command] of measured) {
      const ms = await run(command);
      if (round > 0) times.get(name)!.push(ms);
    }
  }
  for (const [name, all] of times) {
    const isPeer = name.endsWith('(peer)');
    const verdict = isPeer ? '       ' : median(all) <= GOAL_MS ? 'reached' : 'MISSED ';
    console.log(`${verdict} ${name}: ${median(all).toFixed(0)} ms${isPeer ? '' : `, goal ${GOAL_MS}`}`);
  }
} finally {
  await service.stop(true);
}
