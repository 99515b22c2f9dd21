import { beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Cell, RowChange } from '../../server/connectors/define.ts';
import { ConfigurationError } from '../../server/connectors/errors.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../server/connectors/row-changes.ts';
import { batchOf, column } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

const { sides, open, row, load, content, errorOf, tableName } = targetTables();
let table = '';
beforeEach(() => {
  table = tableName();
});

const without = (...unchanged: number[]): RowChange => ({ operation: 'upsert', unchanged });
const changesOf = (...entries: [Cell[], RowChange][]) => ({
  ...batchOf(entries.map(([cells]) => cells)),
  changes: entries.map(([, change]) => change),
});
const all = async (columns: string) =>
  (await sides.destination.sql.unsafe(`select ${columns} from ${table} order by id`)).map((one) => Object.values(one));

describe('changes with append_dedup', () => {
  const mode = 'append_dedup' as const;
  const start = (...names: string[]) => load({ mode }, batchOf(names.map((name, index) => row(index + 1, name))));

  test('the last change of a key wins, in the order of arrival, whatever a cursor says', async () => {
    await start('a', 'b', 'c');
    const counts = await load(
      { mode, fence: 2, stream_run_id: 'second', cursor_column: 'at' },
      changesOf(
        [row(1, null), DELETE],
        [row(2, 'newer', '2024-01-01'), UPSERT],
        [row(2, 'newest', '2023-01-01'), UPSERT],
        [row(3, null), DELETE],
        [row(3, 'back'), UPSERT],
        [row(4, 'short'), UPSERT],
        [row(4, null), DELETE],
        [row(5, 'new'), UPSERT],
      ),
    );
    expect(await content()).toEqual([
      [2, 'newest'],
      [3, 'back'],
      [5, 'new'],
    ]);
    expect(counts).toMatchObject({ rows_loaded: 5, rows_updated: 2, rows_deleted: 1 });
  });

  test('columns left unchanged keep what the stage or else the table has; a row that is not there is not made', async () => {
    await load({ mode }, batchOf([row(1, 'kept', '2024-01-01'), row(2, 'old', '2024-01-01')]));
    await load(
      { mode, fence: 2, stream_run_id: 'second' },
      changesOf(
        [row(1, null, '2024-02-01'), without(1)],
        [row(2, 'staged', '2024-02-01'), UPSERT],
        [row(2, null, '2024-03-01'), without(1)],
        [row(2, 'again', null), without(2)],
        [row(3, null, '2024-02-01'), without(1)],
        [row(4, 'made', '2024-01-01'), UPSERT],
        [row(4, null, null), without(1)],
        [row(5, 'first', '2024-01-01'), UPSERT],
        [row(5, null), DELETE],
        [row(5, 'second', '2024-01-01'), UPSERT],
        [row(5, null, '2024-05-01'), without(1)],
      ),
    );
    expect(await all(`id::int, name, to_char(at, 'MM')`)).toEqual([
      [1, 'kept', '02'],
      [2, 'again', '03'],
      [4, 'made', null],
      [5, 'second', '05'],
    ]);
  });

  test('a truncate removes the rows of the table and of the stage, not those after it', async () => {
    await start('a', 'b', 'c');
    const counts = await load(
      { mode, fence: 2, stream_run_id: 'second' },
      changesOf([row(4, 'lost'), UPSERT], [row(9, null), DELETE]),
      changesOf([row(5, 'lost'), UPSERT], [[null, null, null], TRUNCATE], [row(2, 'b'), UPSERT], [row(6, 'f'), UPSERT]),
      changesOf([row(6, 'g'), UPSERT]),
    );
    expect(await content()).toEqual([
      [2, 'b'],
      [6, 'g'],
    ]);
    expect(counts).toMatchObject({ rows_deleted: 2, rows_updated: 0 });
  });

  test('a truncate alone empties the table, with its state', async () => {
    await start('a', 'b');
    const writer = await open({ mode, fence: 2, stream_run_id: 'second' });
    await writer.write(changesOf([[null, null, null], TRUNCATE]));
    expect(await writer.checkpoint({ cursor: '7' })).toMatchObject({ rows_loaded: 0, rows_deleted: 2 });
    await writer.write(changesOf([row(1, 'after'), UPSERT]));
    await writer.finish({ cursor: '8' });
    expect(await content()).toEqual([[1, 'after']]);
  });

  test('rows with changes and rows without go into one commit', async () => {
    await start('a', 'b');
    await load(
      { mode, fence: 2, stream_run_id: 'second' },
      batchOf([row(3, 'plain')]),
      changesOf([row(1, null), DELETE], [row(3, null), DELETE]),
      batchOf([row(4, 'plain')]),
    );
    expect(await content()).toEqual([
      [2, 'b'],
      [4, 'plain'],
    ]);
  });
});

test('append keeps each change as one more row', async () => {
  const counts = await load(
    {},
    changesOf(
      [row(1, 'a'), UPSERT],
      [row(1, null), DELETE],
      [[null, null, null], TRUNCATE],
      [row(1, null), without(1)],
    ),
  );
  expect((await content('id nulls last, name nulls last')).length).toBe(4);
  expect(counts).toMatchObject({ rows_loaded: 4, rows_deleted: 0 });
});

describe('soft_delete', () => {
  const mode = 'soft_delete' as const;
  const marked = () => all('id::int, name, _deleted_at is not null');

  test('deletes and truncates mark rows, once; a row that comes back is marked no more', async () => {
    await load({ mode }, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
    const second = { mode, fence: 2, stream_run_id: 'second' };
    expect(await load(second, changesOf([row(1, null), DELETE], [row(2, null), DELETE]))).toMatchObject({
      rows_deleted: 2,
    });
    expect(await marked()).toEqual([
      [1, 'a', true],
      [2, 'b', true],
      [3, 'c', false],
    ]);
    const [[before]] = (await all('_deleted_at::text')) as [[string]];
    const third = { mode, fence: 3, stream_run_id: 'third' };
    const counts = await load(third, changesOf([row(2, 'b'), UPSERT], [row(1, null), DELETE]));
    expect(counts).toMatchObject({ rows_deleted: 0, rows_updated: 1 });
    await load(
      { mode, fence: 4, stream_run_id: 'fourth' },
      changesOf([[null, null, null], TRUNCATE], [row(3, 'c'), UPSERT]),
    );
    expect(await marked()).toEqual([
      [1, 'a', true],
      [2, 'b', true],
      [3, 'c', false],
    ]);
    expect((await all('_deleted_at::text'))[0]).toEqual([before]);
  });

  test('a complete read marks the rows that it has not; a table that was there gets the column', async () => {
    await sides.destination.sql.unsafe(
      `create table ${table} (name text, id bigint primary key, at timestamptz); insert into ${table} values ('x', 1), ('y', 2)`,
    );
    const counts = await load({ mode, complete: true }, batchOf([row(2, 'y'), row(3, 'z')]));
    expect(counts).toMatchObject({ rows_deleted: 1, rows_updated: 0, rows_loaded: 2 });
    expect(await marked()).toEqual([
      [1, 'x', true],
      [2, 'y', false],
      [3, 'z', false],
    ]);
    // Read by a cursor, a row that is not among the new ones is still there.
    await load({ mode, fence: 2, stream_run_id: 'second' }, batchOf([row(3, 'zz')]));
    expect(await marked()).toEqual([
      [1, 'x', true],
      [2, 'y', false],
      [3, 'zz', false],
    ]);
  });

  test('a part of a complete read is not committed', async () => {
    const writer = await open({ mode, complete: true });
    await writer.write(batchOf([row(1, 'a')]));
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 0 });
    await writer.finish(null);
    expect(await marked()).toEqual([[1, 'a', false]]);
  });

  test('a field of the name of the mark is refused', async () => {
    const columns = [column('_deleted_at', 'string')];
    expect((await errorOf(open({ mode, columns, primary_key: ['_deleted_at'] })))!.code).toBe('duplicate_column');
  });
});

describe('update', () => {
  const mode = 'update' as const;

  test('changes rows that are there, makes none and deletes none', async () => {
    await load({}, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
    const counts = await load(
      { mode, fence: 2, stream_run_id: 'second' },
      changesOf([row(1, 'changed'), UPSERT], [row(2, null), DELETE], [row(3, 'c'), UPSERT], [row(4, 'new'), UPSERT]),
    );
    expect(await content()).toEqual([
      [1, 'changed'],
      [2, 'b'],
      [3, 'c'],
    ]);
    expect(counts).toMatchObject({ rows_updated: 1, rows_deleted: 0 });
    await load({ mode, fence: 3, stream_run_id: 'third' }, batchOf([row(2, 'plain'), row(5, 'new')]));
    expect((await content())[1]).toEqual([2, 'plain']);
  });

  test('a table that is not there is an error, and so is a stream without a key', async () => {
    const missing = await errorOf(open({ mode }));
    expect(missing).toBeInstanceOf(ConfigurationError);
    expect(missing!.code).toBe('table_missing');
    expect((await errorOf(open({ mode, primary_key: [] })))!.code).toBe('primary_key_required');
  });
});
