import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { watchOver } from '../support/watchdog.ts';
import { duckDbTarget } from './duckdb-target.ts';
import { batchOf } from './postgres-support.ts';
import { errorOf, row } from './writing.ts';

const { content, filesRoot, load, open, sql } = duckDbTarget();

describe('fencing', () => {
  test('rows and state become visible together at each checkpoint, not before', async () => {
    const writer = await open();
    await writer.write(batchOf([row(1, 'a')]));
    await writer.checkpoint({ cursor: '1' });
    await writer.write(batchOf([row(2, 'b')]));
    expect(await content()).toEqual([['1', 'a']]);
    await writer.finish({ cursor: '2' });
    expect(await content()).toEqual([
      ['1', 'a'],
      ['2', 'b'],
    ]);
    expect(await sql('select state, state_version, finished from _pipeline_state')).toEqual([
      ['{"cursor":"2"}', '2', 'true'],
    ]);
  });

  test('a fenced attempt of any mode changes nothing', async () => {
    await load({ mode: 'overwrite' }, batchOf([row(1, 'old')]));
    for (const [at, mode] of (['overwrite', 'append', 'append_dedup'] as const).entries()) {
      const zombie = await open({ mode, fence: 2 + 2 * at });
      await zombie.write(batchOf([row(2, 'zombie')]));
      const heir = await open({ mode, fence: 3 + 2 * at });
      expect((await errorOf(zombie.finish(null)))?.message).toContain('taken over');
      await heir.abort();
    }
    expect(await content()).toEqual([['1', 'old']]);
  });

  test('a cursor changed in the control plane is not reverted', async () => {
    await (await open()).finish({ cursor: '7' });
    await (await open({ fence: 2, stream_run_id: 'second', state_version: 5 })).finish(null);
    const next = await open({ fence: 3, stream_run_id: 'third', state_version: 0 });
    expect(next.committed).toMatchObject({ state: null, state_version: 5 });
  });

  test('many streams write one file in parallel', async () => {
    await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const mode = (['append', 'overwrite', 'append_dedup'] as const)[index % 3]!;
        const writer = await open({ schema: 'new', table: `t${index}`, stream_id: String(index), mode });
        await writer.write(batchOf([row(index, 'x')]));
        await writer.checkpoint({ cursor: '1' });
        await writer.finish(null);
      }),
    );
    expect(await sql('select count(*) from new._pipeline_state where finished')).toEqual([['8']]);
  });

  test('a process that dies during a commit leaves the previous commit', async () => {
    await load({}, batchOf([row(1, 'kept')]));
    const path = join(filesRoot(), 'data.duckdb');
    const child = Bun.spawn(
      [
        'bun',
        '-e',
        `const { DuckDBInstance } = await import('@duckdb/node-api');
        const c = await (await DuckDBInstance.create(process.argv[1])).connect();
        await c.run("begin"); await c.run("insert into t select 2, 'lost', null from range(100000)");
        await c.run("update _pipeline_state set fence = 99"); console.log('ready'); await new Promise(() => setInterval(() => {}, 1000))`,
        path,
      ],
      { stdout: 'pipe', cwd: join(import.meta.dir, '../..') },
    );
    watchOver(child);
    await child.stdout.getReader().read();
    child.kill('SIGKILL');
    await child.exited;
    await load({ fence: 2, stream_run_id: 'second' }, batchOf([row(3, 'next')]));
    expect(await content()).toEqual([
      ['1', 'kept'],
      ['3', 'next'],
    ]);
  });

  test('waits for a file that another process has open', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const path = join(filesRoot(), 'data.duckdb');
    const child = Bun.spawn(
      [
        'bun',
        '-e',
        `const { DuckDBInstance } = await import('@duckdb/node-api');
        const i = await DuckDBInstance.create(process.argv[1]); await i.connect(); console.log('ready');
        process.stdin.once('data', () => process.exit())`,
        path,
      ],
      { stdout: 'pipe', stdin: 'pipe', cwd: join(import.meta.dir, '../..') },
    );
    watchOver(child);
    await child.stdout.getReader().read();
    let done = false;
    const loaded = load({ fence: 2 }, batchOf([row(2, 'b')])).finally(() => (done = true));
    const abort = new AbortController();
    const stopped = open({ fence: 3 }, abort.signal).catch((error: Error) => error.message);
    abort.abort(new Error('stopped'));
    expect(await stopped).toBe('stopped');
    expect(done).toBe(false);
    void child.stdin.write('go');
    void child.stdin.end();
    await loaded;
    await child.exited;
    expect(await content()).toEqual([
      ['1', 'a'],
      ['2', 'b'],
    ]);
  });
});
