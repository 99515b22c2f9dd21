import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import {
  type JobOptions,
  LimitedProcess,
  LimitPassed,
  ProcessDied,
} from '../../server/platform/limited-process/limited-process.ts';
import { errorFrom } from '../../server/platform/limited-process/messages.ts';
import { ProcessPool } from '../../server/platform/limited-process/process-pool.ts';
import { limitHangs } from '../support/hangs.ts';
import { isAlive } from '../support/processes.ts';
import { until } from '../support/until.ts';

limitHangs();

interface Job {
  do: string;
  value?: unknown;
}
const pool = new ProcessPool<Job, unknown>(join(import.meta.dir, '../support/hold-job.ts'), {
  size: 2,
  size_per_owner: 1,
});
const LIMITS = { ms: 60_000, cpu_ms: 60_000, memory_mb: 1024 };

async function run(job: Job, options: Partial<JobOptions> & { owner?: string } = {}): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of pool.run(job, { owner: 'one', limits: LIMITS, ...options })) items.push(item);
  return items;
}

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return error;
  }
}

test('a process is kept warm for the next job', async () => {
  const [value, pid] = await run({ do: 'echo', value: { text: 'ä\n"' } });
  expect(value).toEqual({ text: 'ä\n"' });
  expect(await run({ do: 'echo', value: 2 })).toEqual([2, pid]);
});

test('a process that no longer listens when its job arrives is named by its end', async () => {
  const deaf = new LimitedProcess<Job, unknown>(join(import.meta.dir, '../support/deaf-job.ts'));
  expect(await errorOf(deaf.run({ do: 'echo' }, { limits: LIMITS }).next())).toMatchObject({
    name: 'ProcessDied',
    message: expect.stringContaining('exit code 3'),
  });
});

test('a job can call the parent, and its errors arrive with their class', async () => {
  expect(await run({ do: 'ask', value: 21 }, { calls: { double: (value: number) => 2 * value } })).toEqual([42]);
  const refuse = () => {
    throw new TypeError('refused');
  };
  const refused = run({ do: 'ask', value: 1 }, { calls: { double: refuse } });
  expect(await errorOf(refused)).toMatchObject({ message: 'refused' });
  const thrown = run({ do: 'throw', value: 'far' }, { errorOf: (message) => errorFrom(message, [RangeError]) });
  const error = await errorOf(thrown);
  expect(error).toBeInstanceOf(RangeError);
  expect(error).toMatchObject({ message: 'far' });
});

describe('a job ends at its limit, and the next one runs', () => {
  test.each([
    ['time', { do: 'wait' }, { ms: 300 }],
    ['cpu', { do: 'spin' }, { cpu_ms: 300 }],
    ['memory', { do: 'grow' }, { memory_mb: 300 }],
  ] as const)('of %s', async (limit, job, limits) => {
    const error = await errorOf(run(job, { limits: { ...LIMITS, ...limits } }));
    expect(error).toBeInstanceOf(LimitPassed);
    expect(error).toMatchObject({ limit });
    expect((await run({ do: 'echo', value: 1 }))[0]).toBe(1);
  });
});

test('a process that dies is told, and replaced', async () => {
  const error = await errorOf(run({ do: 'exit' }));
  expect(error).toBeInstanceOf(ProcessDied);
  expect((error as Error).message).toInclude('exit code 3');
  expect((await run({ do: 'echo', value: 1 }))[0]).toBe(1);
});

test('a stop ends the process; an owner waits for its own jobs, and not for those of others', async () => {
  const abort = new AbortController();
  let pid = 0;
  const waiting = (async () => {
    for await (const item of pool.run({ do: 'wait' }, { owner: 'one', limits: LIMITS, signal: abort.signal })) {
      pid = item as number;
    }
  })();
  await until(() => pid > 0);
  let second = false;
  const later = run({ do: 'echo', value: 2 }).then(() => (second = true));
  expect((await run({ do: 'echo', value: 3 }, { owner: 'two' }))[0]).toBe(3);
  expect(second).toBeFalse();
  abort.abort(new Error('stopped'));
  expect(await errorOf(waiting)).toMatchObject({ message: 'stopped' });
  await later;
  expect(isAlive(pid)).toBeFalse();
});
