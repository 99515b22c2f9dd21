import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Cell, RowChange } from '../../server/connectors/define.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../server/connectors/row-changes.ts';
import { codeOf, content, duckDbTarget, load, open, row, sql } from './duckdb-target.ts';
import { batchOf, column } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(30_000);

duckDbTarget();

const without = (...unchanged: number[]): RowChange => ({ operation: 'upsert', unchanged });
const changesOf = (...entries: [Cell[], RowChange][]) => ({
  ...batchOf(entries.map(([cells]) => cells)),
  changes: entries.map(([, change]) => change),
});
const second = { fence: 2, stream_run_id: 'second' };
const NONE: Cell[] = [null, null, null];

describe('append_dedup', () => {
  const mode = 'append_dedup' as const;

  test('the last change of a key wins, in the order of arrival, whatever a cursor says', async () => {
    await load({ mode }, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
    const counts = await load(
      { mode, ...second, cursor_column: 'at' },
      changesOf([row(1, null), DELETE], [row(2, 'newer', '2024-01-01'), UPSERT], [row(3, null), DELETE]),
      changesOf([row(2, 'newest', '2023-01-01'), UPSERT], [row(3, 'back'), UPSERT], [row(4, 'short'), UPSERT]),
      changesOf([row(4, null), DELETE], [row(5, 'new'), UPSERT]),
    );
    expect(await content()).toEqual([
      ['2', 'newest'],
      ['3', 'back'],
      ['5', 'new'],
    ]);
    expect(counts).toMatchObject({ rows_loaded: 5, rows_updated: 2, rows_deleted: 1 });
  });

  test('columns left unchanged keep what the stage or else the table has; a row that is not there is not made', async () => {
    await load({ mode }, batchOf([row(1, 'kept', '2024-01-01'), row(2, 'old', '2024-01-01')]));
    await load(
      { mode, ...second },
      changesOf(
        [row(1, null, '2024-02-01'), without(1)],
        [row(2, 'staged', '2024-02-01'), UPSERT],
        [row(2, null, '2024-03-01'), without(1)],
        [row(3, null, '2024-02-01'), without(1)],
        [row(4, 'made', '2024-01-01'), UPSERT],
        [row(4, null, null), without(1)],
      ),
    );
    expect(await sql('select id, name, month("at") from t order by id')).toEqual([
      ['1', 'kept', '2'],
      ['2', 'staged', '3'],
      ['4', 'made', null],
    ]);
  });

  test('a truncate removes the rows of the table and of the stage, not those after it; also when none comes after it', async () => {
    await load({ mode }, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
    const counts = await load(
      { mode, ...second },
      changesOf([row(4, 'lost'), UPSERT]),
      changesOf([row(5, 'lost'), UPSERT], [NONE, TRUNCATE], [row(2, 'b'), UPSERT], [row(6, 'f'), UPSERT]),
    );
    expect(await content()).toEqual([
      ['2', 'b'],
      ['6', 'f'],
    ]);
    expect(counts).toMatchObject({ rows_deleted: 2, rows_updated: 0 });
    const writer = await open({ mode, fence: 3, stream_run_id: 'third' });
    await writer.write(changesOf([row(7, 'lost'), UPSERT], [NONE, TRUNCATE]));
    expect(await writer.finish({ cursor: '7' })).toMatchObject({ rows_deleted: 2 });
    expect(await content()).toEqual([]);
  });
});

test('append keeps each change as one more row', async () => {
  const counts = await load({}, changesOf([row(1, 'a'), UPSERT], [row(1, null), DELETE], [NONE, TRUNCATE]));
  expect((await content()).length).toBe(3);
  expect(counts).toMatchObject({ rows_loaded: 3, rows_deleted: 0 });
});

describe('soft_delete', () => {
  const mode = 'soft_delete' as const;
  const marked = () => sql('select id, name, _deleted_at is not null from t order by id');

  test('deletes mark rows, once; a row that comes back is marked no more', async () => {
    await load({ mode }, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
    const counts = await load({ mode, ...second }, changesOf([row(1, null), DELETE], [row(2, null), DELETE]));
    expect(counts).toMatchObject({ rows_deleted: 2 });
    const third = await load(
      { mode, fence: 3, stream_run_id: 'third' },
      changesOf([row(2, 'b'), UPSERT], [row(1, null), DELETE], [row(3, null, '2024-01-01'), without(1)]),
    );
    expect(third).toMatchObject({ rows_deleted: 0, rows_updated: 2 });
    expect(await marked()).toEqual([
      ['1', 'a', 'true'],
      ['2', 'b', 'false'],
      ['3', 'c', 'false'],
    ]);
  });

  test('a complete read marks the rows that it has not, in one commit', async () => {
    await load({}, batchOf([row(1, 'x'), row(2, 'y')]));
    const writer = await open({ mode, complete: true, ...second });
    await writer.write(batchOf([row(2, 'y'), row(3, 'z')]));
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 0 });
    expect(await writer.finish(null)).toMatchObject({ rows_deleted: 1, rows_updated: 0, rows_loaded: 2 });
    expect(await marked()).toEqual([
      ['1', 'x', 'true'],
      ['2', 'y', 'false'],
      ['3', 'z', 'false'],
    ]);
  });
});

describe('update', () => {
  const mode = 'update' as const;

  test('changes rows that are there, makes none and deletes none', async () => {
    await load({}, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
    const counts = await load(
      { mode, ...second },
      changesOf([row(1, 'changed'), UPSERT], [row(2, null), DELETE], [row(3, 'c'), UPSERT], [row(4, 'new'), UPSERT]),
    );
    expect(await content()).toEqual([
      ['1', 'changed'],
      ['2', 'b'],
      ['3', 'c'],
    ]);
    expect(counts).toMatchObject({ rows_updated: 1, rows_deleted: 0 });
  });

  test('a table that is not there is an error, and so is a stream without a key', async () => {
    expect(await codeOf(open({ mode }))).toBe('config_error table_missing');
    expect(await codeOf(open({ mode, primary_key: [] }))).toBe('config_error primary_key_required');
    const columns = [column('_deleted_at', 'string')];
    const taken = open({ mode: 'soft_delete', columns, primary_key: ['_deleted_at'] });
    expect(await codeOf(taken)).toBe('config_error duplicate_column');
  });
});
