import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { until } from '../support/until.ts';

const SCRATCH = join(import.meta.dir, '../bench/scratch.ts');
const PROGRAM = `import { writeFileSync } from 'node:fs';
  import { scratchFolder } from ${JSON.stringify(SCRATCH)};
  const folders = [scratchFolder(), scratchFolder()];
  for (const folder of folders) writeFileSync(folder + '/rows', 'x');
  console.log(folders.join(' '));
  if (process.env.WAIT) await new Promise((resolve) => setTimeout(resolve, 60_000));`;

test.each([null, 'SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
  'folders of a bench are gone once it has ended (%p)',
  async (signal) => {
    const child = Bun.spawn([process.execPath, '-e', PROGRAM], {
      env: { ...process.env, ...(signal && { WAIT: '1' }) },
      stdout: 'pipe',
      stderr: 'inherit',
    });
    const { value } = await child.stdout.getReader().read();
    const folders = new TextDecoder().decode(value).trim().split(' ');
    expect(folders).toHaveLength(2);
    if (signal) {
      expect(folders.filter((folder) => existsSync(folder))).toEqual(folders);
      child.kill(signal);
    }
    await child.exited;
    await until(() => !folders.some((folder) => existsSync(folder)));
  },
);
