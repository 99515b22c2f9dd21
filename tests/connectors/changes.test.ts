import { describe, expect, test } from 'bun:test';
import type { Cell, RowChange } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, ConnectorError } from '../../server/connectors/contract/errors.ts';
import { DELETE, TRUNCATE, UPSERT } from '../../server/connectors/contract/changes.ts';
import { batchOf, column } from './postgres-support.ts';
import { targetPlaces } from './target-places.ts';
import { errorOf, row, writingTo } from './writing.ts';

type Entry = [Cell[], RowChange];
const without = (...unchanged: number[]): RowChange => ({ operation: 'upsert', unchanged });
const changesOf = (...entries: Entry[]) => ({
  ...batchOf(entries.map(([cells]) => cells)),
  changes: entries.map(([, change]) => change),
});
const NONE: Cell[] = [null, null, null];
const [second, third, fourth] = ['second', 'third', 'fourth'].map((stream_run_id, index) => ({
  stream_run_id,
  fence: index + 2,
}));

/** Changes of some keys, in one batch and spread over several. */
const LAST_WINS: [how: string, batches: Entry[][]][] = [
  [
    'in one batch',
    [
      [
        [row(1, null), DELETE],
        [row(2, 'newer', '2024-01-01'), UPSERT],
        [row(2, 'newest', '2023-01-01'), UPSERT],
        [row(3, null), DELETE],
        [row(3, 'back'), UPSERT],
        [row(4, 'short'), UPSERT],
        [row(4, null), DELETE],
        [row(5, 'new'), UPSERT],
      ],
    ],
  ],
  [
    'in several',
    [
      [
        [row(1, null), DELETE],
        [row(2, 'newer', '2024-01-01'), UPSERT],
        [row(3, null), DELETE],
      ],
      [
        [row(2, 'newest', '2023-01-01'), UPSERT],
        [row(3, 'back'), UPSERT],
        [row(4, 'short'), UPSERT],
      ],
      [
        [row(4, null), DELETE],
        [row(5, 'new'), UPSERT],
      ],
    ],
  ],
];

for (const place of targetPlaces({ together: true })) {
  describe.skipIf(place.skip)(place.name, () => {
    const { open, load, tableName } = writingTo(place.open);
    const all = (columns: string) => place.rows(`select ${columns} from ${tableName()} t order by id, name`);
    const content = () => all('id, name');
    const marked = () => all("id, name, case when _deleted_at is null then 'there' else 'deleted' end");

    describe('append_dedup', () => {
      const mode = 'append_dedup' as const;
      const start = (...names: string[]) => load({ mode }, batchOf(names.map((name, index) => row(index + 1, name))));

      test.each(LAST_WINS)(
        'the last change of a key to arrive wins, regardless of cursors: %s',
        async (_how, batches) => {
          await start('a', 'b', 'c');
          const counts = await load(
            { mode, ...second, cursor_column: 'at' },
            // A writer may change the rows that it receives.
            ...structuredClone(batches).map((entries) => changesOf(...entries)),
          );
          expect(await content()).toEqual([
            ['2', 'newest'],
            ['3', 'back'],
            ['5', 'new'],
          ]);
          expect(counts).toMatchObject({ rows_loaded: 5, rows_updated: 2, rows_deleted: 1 });
        },
      );

      test('unchanged columns keep the value of the stage or else of the table; a missing row is not created', async () => {
        await load({ mode }, batchOf([row(1, 'kept', '2024-01-01'), row(2, 'old', '2024-01-01')]));
        await load(
          { mode, ...second },
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
        expect(await all('id, name, extract(month from t.at)')).toEqual([
          ['1', 'kept', '2'],
          ['2', 'again', '3'],
          ['4', 'made', null],
          ['5', 'second', '5'],
        ]);
      });

      test('rows pass unique values on within a commit', async () => {
        await load(
          { mode },
          batchOf(['a', 'b', 'c', 'd', 'e'].map((name, index) => row(index + 1, name, '2024-01-01'))),
        );
        await place.run(`alter table ${tableName()} add own varchar(10)`);
        await place.run(`update ${tableName()} set own = concat('own ', name)`);
        await place.run(`create unique index ${tableName()}_name on ${tableName()} (name)`);
        if (place.name === 'mysql') {
          // Its upsert would update the row that holds the value.
          const refused = load({ mode, ...second }, changesOf([row(6, 'g'), UPSERT]));
          expect(await errorOf(refused)).toMatchObject({ code: 'other_unique_key' });
          return;
        }
        if (place.name !== 'duckdb') {
          const child = `${tableName()}_child`;
          await place.run(`create table ${child} as select id as parent from ${tableName()} where id < 3`);
          await place.run(`alter table ${child} add foreign key (parent) references ${tableName()} (id)`);
        }
        const counts = await load(
          { mode, ...second },
          changesOf(
            [row(1, 'b', '2024-02-01'), UPSERT],
            [row(2, 'a', null), without(2)],
            [row(3, null), DELETE],
            [row(6, 'c'), UPSERT],
            [row(7, 'd'), UPSERT],
            [row(4, 'f'), UPSERT],
            [row(5, 'e', '2024-01-01'), UPSERT],
          ),
        );
        expect(await all('id, name, extract(month from t.at), own')).toEqual([
          ['1', 'b', '2', 'own a'],
          ['2', 'a', '1', 'own b'],
          ['4', 'f', null, 'own d'],
          ['5', 'e', '1', 'own e'],
          ['6', 'c', null, null],
          ['7', 'd', null, null],
        ]);
        expect(counts).toMatchObject({ rows_updated: 3, rows_deleted: 1 });
        const taken = changesOf([row(1, 'z'), UPSERT], [row(8, 'a'), UPSERT]);
        expect(await errorOf(load({ mode, ...third }, taken))).toBeInstanceOf(ConnectorError);
        expect((await content()).length).toBe(6);
      });

      test('a truncate removes the rows of table and stage, but not later ones', async () => {
        await start('a', 'b', 'c');
        const counts = await load(
          { mode, ...second },
          changesOf([row(4, 'lost'), UPSERT], [row(9, null), DELETE]),
          changesOf([row(5, 'lost'), UPSERT], [NONE, TRUNCATE], [row(2, 'b'), UPSERT], [row(6, 'f'), UPSERT]),
          changesOf([row(6, 'g'), UPSERT]),
        );
        expect(await content()).toEqual([
          ['2', 'b'],
          ['6', 'g'],
        ]);
        expect(counts).toMatchObject({ rows_deleted: 2, rows_updated: 0 });
      });

      test('a truncate with nothing after it empties the table, with its state', async () => {
        await start('a', 'b');
        const writer = await open({ mode, ...second });
        await writer.write(changesOf([row(7, 'lost'), UPSERT], [NONE, TRUNCATE]));
        expect(await writer.checkpoint({ cursor: '7' })).toMatchObject({ rows_loaded: 0, rows_deleted: 2 });
        expect(await content()).toEqual([]);
        await writer.write(changesOf([row(1, 'after'), UPSERT]));
        await writer.finish({ cursor: '8' });
        expect(await content()).toEqual([['1', 'after']]);
        const last = await open({ mode, ...third });
        expect(last.committed).toMatchObject({ state: { cursor: '8' } });
        await last.write(changesOf([NONE, TRUNCATE]));
        expect(await last.finish({ cursor: '9' })).toMatchObject({ rows_deleted: 1 });
        expect(await content()).toEqual([]);
      });

      test('rows with and without changes share one commit', async () => {
        await start('a', 'b');
        await load(
          { mode, ...second },
          batchOf([row(3, 'plain')]),
          changesOf([row(1, null), DELETE], [row(3, null), DELETE]),
          batchOf([row(4, 'plain')]),
        );
        expect(await content()).toEqual([
          ['2', 'b'],
          ['4', 'plain'],
        ]);
      });
    });

    test('append stores each change as a new row', async () => {
      const counts = await load(
        {},
        changesOf([row(1, 'a'), UPSERT], [row(1, null), DELETE], [NONE, TRUNCATE], [row(1, null), without(1)]),
      );
      expect((await content()).length).toBe(4);
      expect(counts).toMatchObject({ rows_loaded: 4, rows_deleted: 0 });
    });

    describe('soft_delete', () => {
      const mode = 'soft_delete' as const;

      test('deletes and truncates mark rows once; a row that reappears is unmarked', async () => {
        await load({ mode }, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
        const deleted = await load({ mode, ...second }, changesOf([row(1, null), DELETE], [row(2, null), DELETE]));
        expect(deleted).toMatchObject({ rows_deleted: 2 });
        expect(await marked()).toEqual([
          ['1', 'a', 'deleted'],
          ['2', 'b', 'deleted'],
          ['3', 'c', 'there'],
        ]);
        const [since] = await all('_deleted_at');
        const counts = await load(
          { mode, ...third },
          changesOf([row(2, 'b'), UPSERT], [row(1, null), DELETE], [row(3, null, '2024-01-01'), without(1)]),
        );
        expect(counts).toMatchObject({ rows_deleted: 0, rows_updated: 2 });
        expect(await marked()).toEqual([
          ['1', 'a', 'deleted'],
          ['2', 'b', 'there'],
          ['3', 'c', 'there'],
        ]);
        await load({ mode, ...fourth }, changesOf([NONE, TRUNCATE], [row(3, 'c'), UPSERT]));
        expect(await marked()).toEqual([
          ['1', 'a', 'deleted'],
          ['2', 'b', 'deleted'],
          ['3', 'c', 'there'],
        ]);
        expect((await all('_deleted_at'))[0]).toEqual(since);
      });

      test('a complete read marks missing rows; the column is added to an existing table', async () => {
        await place.run(`create table ${tableName()} (name text, id bigint primary key)`);
        await place.run(`insert into ${tableName()} values ('x', 1), ('y', 2)`);
        const counts = await load({ mode, complete: true }, batchOf([row(2, 'y'), row(3, 'z')]));
        expect(counts).toMatchObject({ rows_deleted: 1, rows_updated: 0, rows_loaded: 2 });
        expect(await marked()).toEqual([
          ['1', 'x', 'deleted'],
          ['2', 'y', 'there'],
          ['3', 'z', 'there'],
        ]);
        // Read by a cursor, a row that is not among the new ones is still there.
        await load({ mode, ...second }, batchOf([row(3, 'zz')]));
        expect(await marked()).toEqual([
          ['1', 'x', 'deleted'],
          ['2', 'y', 'there'],
          ['3', 'zz', 'there'],
        ]);
      });

      // Tables are written together as their changes come, never in full.
      if (!place.name.includes('together')) {
        test('a partial complete read is not committed', async () => {
          await load({}, batchOf([row(1, 'x'), row(2, 'y')]));
          const writer = await open({ mode, complete: true, ...second });
          await writer.write(batchOf([row(2, 'y'), row(3, 'z')]));
          expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 0 });
          expect(await writer.finish(null)).toMatchObject({ rows_deleted: 1, rows_updated: 0, rows_loaded: 2 });
          expect(await marked()).toEqual([
            ['1', 'x', 'deleted'],
            ['2', 'y', 'there'],
            ['3', 'z', 'there'],
          ]);
        });
      }

      test('a field with the name of the mark is rejected', async () => {
        const columns = [column('_deleted_at', 'string')];
        const error = await errorOf(open({ mode, columns, primary_key: ['_deleted_at'] }));
        expect(error).toBeInstanceOf(ConfigurationError);
        expect(error!.code).toBe('duplicate_column');
      });
    });

    describe('update', () => {
      const mode = 'update' as const;

      test('changes existing rows, and neither creates nor deletes rows', async () => {
        await load({}, batchOf([row(1, 'a'), row(2, 'b'), row(3, 'c')]));
        const counts = await load(
          { mode, ...second },
          changesOf(
            [row(1, 'changed'), UPSERT],
            [row(2, null), DELETE],
            [row(3, 'c'), UPSERT],
            [row(4, 'new'), UPSERT],
          ),
        );
        expect(await content()).toEqual([
          ['1', 'changed'],
          ['2', 'b'],
          ['3', 'c'],
        ]);
        expect(counts).toMatchObject({ rows_updated: 1, rows_deleted: 0 });
        await load({ mode, ...third }, batchOf([row(2, 'plain'), row(5, 'new')]));
        expect(await content()).toEqual([
          ['1', 'changed'],
          ['2', 'plain'],
          ['3', 'c'],
        ]);
      });

      test.each([
        ['a table that is not there', {}, 'table_missing'],
        ['a stream without a key', { primary_key: [] }, 'primary_key_required'],
      ])('%s is an error', async (_what, more, code) => {
        const error = await errorOf(open({ mode, ...more }));
        expect(error).toBeInstanceOf(ConfigurationError);
        expect(error!.code).toBe(code);
      });
    });
  });
}
