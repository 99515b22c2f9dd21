import { describe, expect, test } from 'bun:test';
import { ConfigurationError, DataError } from '../../server/connectors/contract/errors.ts';
import { batchOf, column } from './postgres-support.ts';
import { targetPlaces } from './target-places.ts';
import { errorOf, row, writingTo } from './writing.ts';

const mode = 'append_dedup' as const;
const at = (day: string) => `${day} 00:00:00+00`;

for (const place of targetPlaces()) {
  describe.skipIf(place.skip)(`append_dedup into ${place.name}`, () => {
    const { open, load, tableName } = writingTo(place.open);
    const content = () => place.rows(`select id, name from ${tableName()} order by id, name`);

    test('the row with the highest cursor wins, then the last to arrive; older rows are ignored', async () => {
      const cursor_column = 'at';
      const first = await load(
        { mode, cursor_column },
        batchOf([
          row(1, 'newest', at('2024-03-01')),
          row(1, 'older', at('2024-01-01')),
          row(2, 'a', at('2024-01-01')),
          row(2, 'b', at('2024-01-01')),
        ]),
        batchOf([row(3, 'no cursor', null), row(3, 'cursor', at('2024-01-01'))]),
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
          row(1, 'stale', at('2024-02-01')),
          row(2, 'b', at('2024-01-01')),
          row(3, 'newer', at('2024-02-01')),
          row(4, 'new', at('2024-01-01')),
        ]),
      );
      expect(second).toMatchObject({ rows_loaded: 4, rows_updated: 1 });
      const moments = ['year', 'month', 'day'].map((part) => `extract(${part} from t.at) as ${part}_of_it`);
      expect(await place.rows(`select id, name, ${moments.join(', ')} from ${tableName()} t order by id`)).toEqual([
        ['1', 'newest', '2024', '3', '1'],
        ['2', 'b', '2024', '1', '1'],
        ['3', 'newer', '2024', '2', '1'],
        ['4', 'new', '2024', '1', '1'],
      ]);
    });

    test('a row that changed without a higher cursor replaces what is there', async () => {
      const how = { mode, cursor_column: 'at' };
      await load(how, batchOf([row(1, 'before', at('2024-01-01'))]));
      const same = batchOf([row(1, 'after', at('2024-01-01'))]);
      expect(await load({ ...how, fence: 2, stream_run_id: 'second' }, same)).toMatchObject({ rows_updated: 1 });
      expect(await content()).toEqual([['1', 'after']]);
    });

    test('a value that appears, or goes, is a change', async () => {
      await load({ mode }, batchOf([row(1, null), row(2, 'goes')]));
      const second = batchOf([row(1, 'appears'), row(2, null)]);
      expect(await load({ mode, fence: 2, stream_run_id: 'second' }, second)).toMatchObject({ rows_updated: 2 });
      expect(await content()).toEqual([
        ['1', 'appears'],
        ['2', null],
      ]);
    });

    test('each checkpoint merges; counts are totals of the stream run across attempts', async () => {
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

    test('missing key and columns are added to an existing table', async () => {
      await place.run(`create table ${tableName()} (NAME text, id bigint)`);
      await place.run(`insert into ${tableName()} values ('old', 1), ('stays', 7)`);
      await load({ mode }, batchOf([row(1, 'new', at('2024-01-01'))]));
      expect(await content()).toEqual([
        ['1', 'new'],
        ['7', 'stays'],
      ]);
    });

    test('an existing table with duplicate keys is rejected with a clear error', async () => {
      await place.run(`create table ${tableName()} (name text, id bigint)`);
      await place.run(`insert into ${tableName()} values ('x', 1), ('y', 1)`);
      const error = await errorOf(open({ mode }));
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(error!.code).toBe('key_not_unique');
    });

    test('a row without a key is a data error that names row and column, and is rolled back', async () => {
      const error = await errorOf(load({ mode }, batchOf([row(1, 'a'), row(null, 'b')])));
      expect(error).toBeInstanceOf(DataError);
      expect(error!.code).toBe('null_value');
      expect(error!.message).toMatch(place.missingKey);
      const there = await place.rows(
        `select table_name as name from information_schema.tables where table_name = '${tableName()}'`,
      );
      expect(there).toEqual(place.makesTablesInTransactions ? [] : [[tableName()]]);
      if (!place.makesTablesInTransactions) expect(await content()).toEqual([]);
    });

    test('composite keys, key-only tables, and columns named like those of the stage', async () => {
      const columns = [column('a', 'integer'), column('_seq', 'string'), column('__seq', 'string')];
      const more = { mode, columns, primary_key: ['_seq', 'a', '__seq'] };
      await load(
        more,
        batchOf([
          ['1', 'x', ''],
          ['1', 'x', ''],
          ['1', 'y', ''],
        ]),
      );
      await load(
        { ...more, fence: 2 },
        batchOf([
          ['1', 'x', ''],
          ['2', 'x', ''],
        ]),
      );
      expect(await place.rows(`select a, _seq, __seq from ${tableName()} order by 1, 2`)).toEqual([
        ['1', 'x', ''],
        ['1', 'y', ''],
        ['2', 'x', ''],
      ]);
    });
  });
}
