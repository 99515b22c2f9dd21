import { beforeEach, describe, expect, test } from 'bun:test';
import type { WriteTarget } from '../../server/connectors/contract/connector.ts';
import { DataError } from '../../server/connectors/contract/errors.ts';
import { batchOf } from './postgres-support.ts';
import { targetPlaces } from './target-places.ts';
import { errorOf, row, writingTo } from './writing.ts';

const DAY = { column: 'at', start: '2025-01-02', end: '2025-01-03' };
const at = (id: number, name: string, time: string | null) => row(id, name, time && `2025-01-${time}+00`);
const OLD = [
  at(1, 'before', '01 23:59:59.999999'),
  at(2, 'first moment', '02 00:00:00'),
  at(3, 'last moment', '02 23:59:59.999999'),
  at(4, 'after', '03 00:00:00'),
  at(5, 'never', null),
];

/** Types that store other values than the source. */
const OTHERS: Record<string, string[]> = {
  postgres: ['text', 'date', 'timestamptz(0)'],
  mysql: ['longtext', 'date', 'datetime'],
  duckdb: ['varchar', 'date', 'timestamp'],
};

describe.each(targetPlaces().filter(({ skip }) => !skip))('$name: an appended window', (place) => {
  const { open, load, tableName } = writingTo(place.open);
  let run = 0;
  /** A separate stream run, as for a chunk that is loaded again. */
  const chunk = (more: Partial<WriteTarget> = {}) => {
    run += 1;
    return { stream_id: `chunk ${run}`, stream_run_id: `chunk ${run}`, replace_window: DAY, ...more };
  };
  const content = async (from = tableName()) =>
    (await place.rows(`select id, name from ${from} order by id, name`)).map((one) => one.join(' '));
  const all = OLD.map(([id, text]) => `${id} ${text}`);
  const outside = ['1 before', '4 after', '5 never'];

  beforeEach(() => load({}, batchOf(OLD.map((cells) => [...cells]))));

  test('replaces the rows in [start, end), including those deleted in the source; others, and rows without a time, stay', async () => {
    const rows = [at(3, 'new', '02 12:00:00'), at(6, 'new', '02 13:00:00')];
    expect(await load(chunk(), batchOf(rows))).toMatchObject({ rows_loaded: 2, rows_deleted: 2, rows_updated: 0 });
    expect(await content()).toEqual(['1 before', '3 new', '4 after', '5 never', '6 new']);
  });

  test('is not duplicated by a reload, and keeps duplicates of the source', async () => {
    const rows = [at(2, 'a', '02 00:00:00'), at(2, 'b', '02 00:00:00')];
    for (const _again of [1, 2]) await load(chunk(), batchOf(rows));
    expect(await content()).toEqual(['1 before', '2 a', '2 b', '4 after', '5 never']);
    expect(await load(chunk())).toMatchObject({ rows_loaded: 0, rows_deleted: 2 });
    expect(await content()).toEqual(outside);
  });

  test('may be open on one side, and begin at an instant', async () => {
    await load(chunk({ replace_window: { column: 'at', start: null, end: '2025-01-02T23:59:59.999Z' } }));
    expect(await content()).toEqual(['3 last moment', '4 after', '5 never']);
    await load(chunk({ replace_window: { column: 'at', start: '2025-01-02T23:59:59.999Z', end: null } }));
    expect(await content()).toEqual(['5 never']);
    const none = chunk({ replace_window: { column: 'at', start: null, end: null } });
    expect((await errorOf(load(none)))!.code).toBe('invalid_window');
    expect(await content()).toEqual(['5 never']);
  });

  test('becomes visible as a whole: an intermediate checkpoint commits nothing', async () => {
    const writer = await open(chunk());
    await writer.write(batchOf([at(7, 'new', '02 01:00:00')]));
    expect(await writer.checkpoint({ cursor: '7' })).toMatchObject({ rows_loaded: 0, rows_deleted: 0 });
    expect(await content()).toEqual(all);
    await writer.write(batchOf([at(8, 'new', '02 02:00:00')]));
    expect(await writer.finish({ cursor: '8' })).toMatchObject({ rows_loaded: 2, rows_deleted: 2 });
    expect(await content()).toEqual([...outside, '7 new', '8 new']);
  });

  test('loads in parallel with others into a new table, without waiting for them', async () => {
    const fresh = `${tableName()}_fresh`;
    const next = { column: 'at', start: '2025-01-03', end: '2025-01-04' };
    const both = [
      await open(chunk({ table: fresh })),
      await open(chunk({ table: fresh, replace_window: next })),
    ] as const;
    await both[0].write(batchOf([at(1, 'a', '02 00:00:00')]));
    await both[1].write(batchOf([at(2, 'b', '03 00:00:00')]));
    for (const writer of both) expect(await writer.finish(null)).toMatchObject({ rows_loaded: 1, rows_deleted: 0 });
    expect(await content(fresh)).toEqual(['1 a', '2 b']);
  });

  test('keeps the old rows if the worker stops, a value is rejected, or another attempt has taken over', async () => {
    const abort = new AbortController();
    const stopped = await open(chunk(), abort.signal);
    await stopped.write(batchOf([at(7, 'new', '02 01:00:00')]));
    abort.abort(new Error('stop'));
    await stopped.abort();
    expect(await content()).toEqual(all);
    expect(await errorOf(load(chunk(), batchOf([['x', 'new', null]])))).toBeInstanceOf(DataError);
    expect(await content()).toEqual(all);
    const how = chunk();
    const zombie = await open(how);
    await zombie.write(batchOf([at(7, 'zombie', '02 01:00:00')]));
    const next = await open({ ...how, fence: 2 });
    expect((await errorOf(zombie.finish(null)))!.name).toBe('FencedError');
    await zombie.abort();
    expect(await content()).toEqual(all);
    await next.write(batchOf([at(7, 'new', '02 01:00:00')]));
    await next.finish(null);
    expect(await content()).toEqual([...outside, '7 new']);
  });

  test('is rejected if the column stores altered values, so that the window is ambiguous', async () => {
    for (const type of OTHERS[place.name]!) {
      const other = `${tableName()}_${type.replaceAll(/\W/g, '_')}`;
      await place.run(`create table ${other} (id bigint, name varchar(99), ${place.quoted('at')} ${type})`);
      await place.run(`insert into ${other} (id, name) select id, name from ${tableName()}`);
      const error = await errorOf(load(chunk({ table: other }), batchOf([at(7, 'new', '02 01:00:00')])));
      // A column that cannot hold the value is refused for that reason first.
      expect(error!.code).toBeOneOf(['window_not_replaceable', 'value_does_not_fit']);
      expect(await content(other)).toEqual(all);
    }
  });
});
