import { beforeEach, describe, expect, test, setDefaultTimeout } from 'bun:test';
import { ConfigurationError, DataError } from '../../server/connectors/errors.ts';
import { batchOf, column } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

const { sides, open, row, load, content, exists, errorOf, tableName } = targetTables();
let table = '';
beforeEach(() => {
  table = tableName();
});

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
      [1, 'newest'],
      [2, 'b'],
      [3, 'cursor'],
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
      [1, 'newest'],
      [2, 'b'],
      [3, 'newer'],
      [4, 'new'],
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
    expect(retry.committed).toMatchObject({ state: { cursor: '2' }, state_version: 2, counts: { rows_loaded: 3 } });
    await retry.write(batchOf([row(3, 'c')]));
    expect(await retry.finish({ cursor: '3' })).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
    expect(await content()).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
  });

  test('an existing table without a key gets one', async () => {
    await sides.destination.sql.unsafe(
      `create table ${table} (name text, id bigint, at timestamptz); insert into ${table} values ('old', 1)`,
    );
    await load({ mode }, batchOf([row(1, 'new')]));
    expect(await content()).toEqual([[1, 'new']]);
  });

  test('an existing table with doubled keys is refused with a clear error', async () => {
    await sides.destination.sql.unsafe(
      `create table ${table} (name text, id bigint, at timestamptz); insert into ${table} values ('x', 1), ('y', 1)`,
    );
    const error = await errorOf(open({ mode }));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error!.code).toBe('key_not_unique');
  });

  test('a row without its key is an error of the data that names row and column', async () => {
    const error = await errorOf(load({ mode }, batchOf([row(1, 'a'), [null, 'b', null]])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('null_value');
    expect(error!.message).toContain('row 2');
    expect(await exists()).toBe(false);
  });

  test("keys of several columns, nothing but keys, and a column named like the stage's own", async () => {
    const columns = [column('a', 'integer'), column('_seq', 'string')];
    const more = { mode, columns, primary_key: ['_seq', 'a'] };
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
    const rows = await sides.destination.sql.unsafe(`select a::int, _seq from ${table} order by 1, 2`);
    expect(rows.map(({ a, _seq }) => [a, _seq])).toEqual([
      [1, 'x'],
      [1, 'y'],
      [2, 'x'],
    ]);
  });

  test('a partitioned table takes the merge', async () => {
    await sides.destination.sql.unsafe(`create table ${table} (id bigint primary key, name text, at timestamptz) partition by hash (id);
      create table ${table}_0 partition of ${table} for values with (modulus 1, remainder 0); insert into ${table} values (1, 'old')`);
    await load({ mode }, batchOf([row(1, 'new'), row(2, 'new')]));
    expect(await content()).toEqual([
      [1, 'new'],
      [2, 'new'],
    ]);
  });
});
