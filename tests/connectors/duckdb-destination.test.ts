import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Batch, ConnectorContext, Writer, WriteTarget } from '../../server/connectors/define.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import type { DuckDbDestinationConfig } from '../../server/connectors/duckdb/settings.ts';
import { ConnectorError } from '../../server/connectors/errors.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { contextOf } from './fixtures.ts';
import { batchOf, column } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

const COLUMNS = [column('id', 'integer'), column('name', 'string'), column('at', 'timestamp_tz')];
let place: Awaited<ReturnType<typeof duckDbFolder>>;
let writers: Writer[] = [];
beforeEach(async () => {
  place = await duckDbFolder();
});
afterEach(async () => {
  for (const writer of writers) await writer.abort();
  writers = [];
  await place.close();
});

const target = (more: Partial<WriteTarget> = {}): WriteTarget => ({
  schema: null,
  table: 't',
  columns: COLUMNS,
  primary_key: ['id'],
  cursor_column: null,
  mode: 'append',
  connection_id: 'connection',
  stream_id: 'stream',
  connection_run_id: 'run',
  stream_run_id: 'first',
  fence: 1,
  state_version: 0,
  ...more,
});
const context = (signal?: AbortSignal) =>
  contextOf(
    duckDbDestination,
    { filesRoot: place.filesRoot },
    { settings: { path: 'data.duckdb' }, signal },
  ) as ConnectorContext<DuckDbDestinationConfig>;
const open = async (more: Partial<WriteTarget> = {}, signal?: AbortSignal) => {
  const writer = await duckDbDestination.open(context(signal), target(more));
  writers.push(writer);
  return writer;
};
const load = async (more: Partial<WriteTarget>, ...batches: Batch[]) => {
  const writer = await open(more);
  for (const batch of batches) await writer.write(batch);
  return writer.finish(null);
};
const row = (id: number | null, name: string | null, at: string | null = null) => [
  id === null ? null : String(id),
  name,
  at,
];
const sql = (...statements: string[]) => onDuckDb(join(place.filesRoot, 'data.duckdb'), ...statements);
const content = () => sql('select id, name from t order by id, name');
const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof ConnectorError ? error : new Error(String(error))),
  );
const codeOf = async (work: Promise<unknown>) => {
  const error = await errorOf(work);
  return error instanceof ConnectorError ? `${error.type} ${error.code}` : String(error);
};

describe('append_dedup', () => {
  const mode = 'append_dedup' as const;

  test('the row with the highest cursor wins, then the last to arrive; older rows change nothing', async () => {
    const cursor_column = 'at';
    const first = await load(
      { mode, cursor_column },
      batchOf([
        row(1, 'newest', '2024-03-01'),
        row(1, 'older', '2024-01-01'),
        row(2, 'a', '2024-01-01'),
        row(2, 'b', '2024-01-01'),
      ]),
      batchOf([row(3, 'no cursor', null), row(3, 'cursor', '2024-01-01')]),
    );
    expect(first).toMatchObject({ rows_loaded: 6, rows_updated: 0 });
    expect(await content()).toEqual([
      ['1', 'newest'],
      ['2', 'b'],
      ['3', 'cursor'],
    ]);
    const second = await load(
      { mode, cursor_column, fence: 2, stream_run_id: 'second' },
      batchOf([
        row(1, 'stale', '2024-02-01'),
        row(2, 'b', '2024-01-01'),
        row(3, 'newer', '2024-02-01'),
        row(4, 'new', '2024-01-01'),
      ]),
    );
    expect(second).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
    expect(await content()).toEqual([
      ['1', 'newest'],
      ['2', 'b'],
      ['3', 'newer'],
      ['4', 'new'],
    ]);
  });

  test('each checkpoint merges; counts are totals of the stream run, over attempts', async () => {
    const writer = await open({ mode });
    await writer.write(batchOf([row(1, 'a'), row(2, 'a')]));
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 2, rows_updated: 0 });
    await writer.write(batchOf([row(2, 'b')]));
    expect(await writer.checkpoint({ cursor: '2' })).toMatchObject({ rows_loaded: 3, rows_updated: 1 });
    await writer.write(batchOf([row(9, 'lost')]));
    await writer.abort();
    const retry = await open({ mode, fence: 2 });
    expect(retry.committed).toMatchObject({
      state: { cursor: '2' },
      state_version: 2,
      counts: { rows_loaded: 3, rows_updated: 1 },
    });
    await retry.write(batchOf([row(3, 'c')]));
    expect(await retry.finish({ cursor: '3' })).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
    expect(await content()).toEqual([
      ['1', 'a'],
      ['2', 'b'],
      ['3', 'c'],
    ]);
  });

  test('numbers of any precision are ordered as numbers', async () => {
    const columns = [column('id', 'integer'), column('name', 'string'), column('at', 'number')];
    const more = { mode, columns, cursor_column: 'at' };
    await load(more, batchOf([row(1, 'newer', '10'), row(1, 'older', '9')]));
    expect(await load({ ...more, fence: 2 }, batchOf([row(1, 'older', '9.5')]))).toMatchObject({ rows_updated: 0 });
    expect(await content()).toEqual([['1', 'newer']]);
  });

  test('an existing table gets what it lacks; one with doubled keys is refused', async () => {
    await sql(`create table t (NAME varchar, id bigint)`, `insert into t values ('old', 1), ('stays', 7)`);
    await load({ mode }, batchOf([row(1, 'new', '2024-01-01')]));
    expect(await content()).toEqual([
      ['1', 'new'],
      ['7', 'stays'],
    ]);
    await sql(`create table twice as select * from t union all select * from t`);
    expect(await codeOf(open({ mode, table: 'twice', stream_id: 'other' }))).toBe('config_error key_not_unique');
  });

  test('a row without its key is an error of the data that names row and column, and nothing of it stays', async () => {
    const error = await errorOf(load({ mode }, batchOf([row(1, 'a'), row(null, 'b')])));
    expect(error).toMatchObject({ code: 'null_value', message: 't: row 2 has no id, which is its key' });
    expect(await sql("select 1 from duckdb_tables() where table_name = 't'")).toEqual([]);
  });

  test('keys of several columns, nothing but keys', async () => {
    const columns = [column('a', 'integer'), column('seq', 'string')];
    const more = { mode, columns, primary_key: ['seq', 'a'] };
    await load(
      more,
      batchOf([
        ['1', 'x'],
        ['1', 'x'],
        ['1', 'y'],
      ]),
    );
    await load(
      { ...more, fence: 2 },
      batchOf([
        ['1', 'x'],
        ['2', 'x'],
      ]),
    );
    expect(await sql('select a, seq from t order by all')).toEqual([
      ['1', 'x'],
      ['1', 'y'],
      ['2', 'x'],
    ]);
  });
});

describe('who may commit', () => {
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

  test('a cursor that somebody moved in the control plane is not brought back', async () => {
    await (await open()).finish({ cursor: '7' });
    await (await open({ fence: 2, stream_run_id: 'second', state_version: 5 })).finish(null);
    const next = await open({ fence: 3, stream_run_id: 'third', state_version: 0 });
    expect(next.committed).toMatchObject({ state: null, state_version: 5 });
  });

  test('many streams write one file side by side', async () => {
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

  test('a process that dies in a commit leaves the last one', async () => {
    await load({}, batchOf([row(1, 'kept')]));
    const path = join(place.filesRoot, 'data.duckdb');
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
    await child.stdout.getReader().read();
    child.kill('SIGKILL');
    await child.exited;
    await load({ fence: 2, stream_run_id: 'second' }, batchOf([row(3, 'next')]));
    expect(await content()).toEqual([
      ['1', 'kept'],
      ['3', 'next'],
    ]);
  });

  test('a file that another process has open is waited for', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const path = join(place.filesRoot, 'data.duckdb');
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
    await child.stdout.getReader().read();
    let done = false;
    const loaded = load({ fence: 2 }, batchOf([row(2, 'b')])).finally(() => (done = true));
    const abort = new AbortController();
    const stopped = open({ fence: 3 }, abort.signal).catch((error: Error) => error.message);
    abort.abort(new Error('stopped'));
    expect(await stopped).toBe('stopped');
    expect(done).toBe(false);
    child.stdin.write('go');
    child.stdin.end();
    await loaded;
    await child.exited;
    expect(await content()).toEqual([
      ['1', 'a'],
      ['2', 'b'],
    ]);
  });
});

test('a value that does not fit is named by row and column, and nothing of it stays', async () => {
  const error = await errorOf(load({}, batchOf([row(1, 'a', '2024-01-01')]), batchOf([row(2, 'b', 'soon')])));
  expect(error).toMatchObject({
    type: 'system_error',
    code: 'value_does_not_fit',
    message: 't: row 2 has "soon" in at, which is no TIMESTAMP WITH TIME ZONE',
  });
  expect(await sql("select 1 from duckdb_tables() where table_name = 't'")).toEqual([]);
});

test('odd names in schema, table and column; names that differ by case only and views are refused', async () => {
  const odd = 'Ta"b\'le; — 表 %s \\';
  for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
    const columns = [column('I "d', 'integer'), column('select', 'string'), column('Ünï', 'string')];
    const more = {
      schema: `S "x ${mode}`,
      table: odd,
      columns,
      primary_key: ['I "d'],
      mode,
      stream_id: `odd/../${mode}`,
    };
    await load(more, batchOf([['1', 'a', 'b']]));
    await load({ ...more, fence: 2 }, batchOf([['2', 'a', 'b']]));
    const rows = await sql(`select 1 from "S ""x ${mode}"."${odd.replaceAll('"', '""')}"`);
    expect(rows.length).toBe(mode === 'overwrite' ? 1 : 2);
  }
  expect(await codeOf(open({ columns: [column('a', 'string'), column('A', 'string')] }))).toBe(
    'config_error duplicate_column',
  );
  await sql('create view v as select 1 as id');
  expect(await codeOf(open({ table: 'v' }))).toBe('config_error not_a_table');
});

test('what is spilled is gone with the writer, and what a crash left goes with the next attempt', async () => {
  const left = join(place.filesRoot, '.data.duckdb.stream.1.spill/x.tmp');
  await Bun.write(left, 'left');
  const writer = await open({ fence: 2 });
  // What repeats would be packed and fit into memory.
  for (let at = 0; at < 26; at++) {
    const name = randomBytes(12_500_000).toString('base64');
    const rows = Array.from({ length: 2500 }, (_, id) => row(at * 2500 + id, name.slice(id * 6000, (id + 1) * 6000)));
    await writer.write({ rows, bytes: name.length });
  }
  const spilled = () => readdir(place.filesRoot).then((names) => names.filter((one) => one.endsWith('.spill')));
  expect(await spilled()).toEqual(['.data.duckdb.stream.2.spill']);
  expect(await writer.finish(null)).toMatchObject({ rows_loaded: 65_000 });
  expect(await spilled()).toEqual([]);
  expect(await sql('select count(*), count(distinct id), sum(length(name)) = 390000000 from t')).toEqual([
    ['65000', '65000', 'true'],
  ]);
});
