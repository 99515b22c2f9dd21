import { expect, test } from 'bun:test';

// Looks at itself rarely: that would be work.
const PROGRAM = `
  import { heapStats } from 'bun:jsc';
  import { z } from 'zod';
  import { shrinkWhenIdle } from './server/platform/memory/shrink-when-idle.ts';
  z.object({ name: z.string(), age: z.int().min(0) }).parse({ name: 'Ada', age: 36 });
  const compiled = () => heapStats().objectTypeCounts.FunctionCodeBlock ?? 0;
  const before = compiled();
  const shrinking = shrinkWhenIdle({ every_ms: 100 });
  while (compiled() > before / 2) await Bun.sleep(1000);
  await shrinking.stop();
  console.log('shrunk');
`;

test('an idle process drops the code that its start has compiled', async () => {
  const child = Bun.spawn([process.execPath, '-e', PROGRAM], {
    cwd: `${import.meta.dir}/../..`,
    stderr: 'inherit',
    timeout: 25_000,
  });
  expect(await new Response(child.stdout).text()).toBe('shrunk\n');
}, 30_000);
