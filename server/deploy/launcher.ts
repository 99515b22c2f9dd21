import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { RUNTIME_SETTINGS } from '../platform/tune-runtime.ts';

/**
 * The start of the single file: unpacks the service once, and becomes it. The file contains the runtime, too, which
 * BUN_BE_BUN turns it into; so the service starts its own processes as it does from a checkout.
 */
export async function launch(archive: string, version: string): Promise<void> {
  const base = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'data-pipelines');
  const folder = join(base, version);
  if (!existsSync(folder)) {
    try {
      await unpack(archive, folder);
    } catch (error) {
      const advice = 'Set XDG_CACHE_HOME to a folder that can be written and has 300 MB of free space';
      process.stderr.write(`The service could not be unpacked into ${base}: ${(error as Error).message}. ${advice}\n`);
      process.exit(1);
    }
  }
  const [first, ...rest] = process.argv.slice(2);
  const isClient = first === 'cli';
  const program = join(folder, isClient ? 'client/cli/main.ts' : 'server/main.ts');
  const words = isClient ? rest : process.argv.slice(2);
  // Settings of the working folder are not those of the service.
  const options = ['--no-env-file', `--config=${join(folder, 'bunfig.toml')}`];
  const env = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== undefined));
  const settings = { ...RUNTIME_SETTINGS, ...env, BUN_BE_BUN: '1' };
  process.execve!(process.execPath, [process.execPath, ...options, program, ...words], settings);
}

async function unpack(archive: string, folder: string): Promise<void> {
  const draft = `${folder}.draft-${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    const tar = Bun.spawn(['tar', '-xf', '-', '-C', draft], { stdin: 'pipe', stdout: 'ignore', stderr: 'pipe' });
    const ended = Promise.all([tar.exited, new Response(tar.stderr).text()]);
    const broken = await feed(archive, tar.stdin).then(
      () => null,
      (error: Error) => error,
    );
    const [code, problem] = await ended;
    // Before a pipe that broke because of it.
    if (code !== 0) throw new Error(problem.trim().split('\n')[0] || `tar ended with ${code}`);
    if (broken) throw broken;
    // Another start may have been faster.
    if (!existsSync(folder)) renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

async function feed(archive: string, stdin: Bun.FileSink): Promise<void> {
  for await (const part of Bun.file(archive).stream().pipeThrough(new DecompressionStream('zstd'))) {
    await stdin.write(part);
    await stdin.flush();
  }
  await stdin.end();
}
