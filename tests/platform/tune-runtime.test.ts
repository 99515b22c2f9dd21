import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RUNTIME_SETTINGS } from '../../server/platform/tune-runtime.ts';

const MODULE = join(import.meta.dir, '../../server/platform/tune-runtime.ts');
const [name, value] = Object.entries(RUNTIME_SETTINGS)[0]!;

test('a process starts over with the settings of the runtime, as the same process with the same words', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tune-runtime-'));
  const program = join(folder, 'program.ts');
  writeFileSync(
    program,
    `import { tuneRuntime } from ${JSON.stringify(MODULE)};
     console.log(JSON.stringify([process.pid, process.argv.slice(2), process.env.${name}, process.execArgv]));
     tuneRuntime();
     console.log('end');`,
  );
  const linesOf = async (set: string | undefined) => {
    // Options from there would be among those of the command as well.
    const env = { ...process.env, BUN_OPTIONS: undefined, [name]: set };
    const child = Bun.spawn([process.execPath, '--no-env-file', program, 'all', '--no-wait'], { env, stdout: 'pipe' });
    const lines = (await new Response(child.stdout).text()).trim().split('\n');
    expect(await child.exited).toBe(0);
    return { pid: child.pid, lines: lines.map((line) => (line === 'end' ? line : JSON.parse(line))) };
  };
  const words = ['all', '--no-wait'];
  const untuned = await linesOf(undefined);
  const { pid } = untuned;
  expect(untuned.lines).toEqual([[pid, words, null, ['--no-env-file']], [pid, words, value, ['--no-env-file']], 'end']);
  // What an operator has set stays.
  const set = await linesOf('77');
  expect(set.lines).toEqual([[set.pid, words, '77', ['--no-env-file']], 'end']);
  rmSync(folder, { recursive: true });
});
