import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { AnyDestination, Batch, ConnectorContext, Writer, WriteTarget } from '../../server/connectors/define.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { DataError } from '../../server/connectors/errors.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { contextOf } from './fixtures.ts';
import { destinationConfig, errorOf, mysqlDatabase } from './mysql-support.ts';
import { batchOf, column } from './postgres-support.ts';

// PostgreSQL's own are in postgres-windows.test.ts.
const mysql = mysqlDatabase();
let folder: Awaited<ReturnType<typeof duckDbFolder>>;
beforeAll(async () => {
  folder = await duckDbFolder();
});
afterAll(() => folder.close());

interface Side {
  destination: AnyDestination;
  context(signal: AbortSignal): ConnectorContext<unknown>;
  sql(statement: string): Promise<unknown[][]>;
  /** Types that keep other values than the source has. */
  others: string[];
}
const SIDES: [string, boolean, Side][] = [
  [
    'mysql',
    mariaDbMissing === null,
    {
      destination: mysqlDestination,
      context: (signal) => ({ ...destinationConfig(mysql).ctx, signal }),
      sql: async (statement) => {
        const found = await mysql.sql(statement);
        return Array.isArray(found) ? found.map((row) => Object.values(row)) : [];
      },
      others: ['longtext', 'date', 'datetime'],
    },
  ],
  [
    'duckdb',
    true,
    {
      destination: duckDbDestination,
      context: (signal) =>
        contextOf(duckDbDestination, folder, {
          settings: { path: 'data.duckdb' },
          signal,
        }) as ConnectorContext<unknown>,
      sql: (statement) => onDuckDb(join(folder.filesRoot, 'data.duckdb'), statement),
      others: ['varchar', 'date', 'timestamp'],
    },
  ],
];
const DAY = { column: 'at', start: '2025-01-02', end: '2025-01-03' };
const COLUMNS = [column('id', 'integer'), column('name', 'string'), column('at', 'timestamp_tz')];
const at = (id: number, name: string, time: string | null) => [String(id), name, time && `2025-01-${time}+00`];
const OLD = [
  at(1, 'before', '01 23:59:59.999999'),
  at(2, 'first moment', '02 00:00:00'),
  at(3, 'last moment', '02 23:59:59.999999'),
  at(4, 'after', '03 00:00:00'),
  at(5, 'never', null),
];

describe.each(SIDES.filter(([, there]) => there))('%s: a window that is appended', (name, _, side) => {
  let table = '';
  let run = 0;
  const writers: Writer[] = [];
  let abort = new AbortController();
  const open = async (more: Partial<WriteTarget> = {}) => {
    const target: WriteTarget = {
      schema: null,
      table,
      columns: COLUMNS,
      primary_key: ['id'],
      cursor_column: null,
      mode: 'append',
      connection_id: name,
      stream_id: table,
      connection_run_id: 'run',
      stream_run_id: 'first',
      fence: 1,
      state_version: 0,
      ...more,
    };
    const writer = await side.destination.open(side.context(abort.signal), target);
    writers.push(writer);
    return writer;
  };
  const load = async (more: Partial<WriteTarget>, ...batches: Batch[]) => {
    const writer = await open(more);
    for (const batch of batches) await writer.write(batch);
    return writer.finish(null);
  };
  /** A stream run of its own, as a chunk that is done again has. */
  const chunk = (more: Partial<WriteTarget> = {}) => {
    run += 1;
    return { stream_id: `chunk ${run}`, stream_run_id: `chunk ${run}`, replace_window: DAY, ...more };
  };
  const content = async (from = table) =>
    (await side.sql(`select id, name from ${from} order by id, name`)).map(
      ([id, text]) => `${String(id)} ${String(text)}`,
    );
  const all = OLD.map(([id, text]) => `${id} ${text}`);
  const outside = ['1 before', '4 after', '5 never'];

  beforeEach(async () => {
    run += 1;
    table = `window_${run}`;
    abort = new AbortController();
    await load({}, batchOf(OLD));
  });
  afterEach(async () => {
    for (const writer of writers.splice(0)) await writer.abort();
  });

  test('replaces the rows in [start, end), those the source has no longer too; others and those of no time stay', async () => {
    const rows = [at(3, 'new', '02 12:00:00'), at(6, 'new', '02 13:00:00')];
    expect(await load(chunk(), batchOf(rows))).toMatchObject({ rows_loaded: 2, rows_deleted: 2, rows_updated: 0 });
    expect(await content()).toEqual(['1 before', '3 new', '4 after', '5 never', '6 new']);
  });

  test('doubles nothing when it is loaded again, and keeps rows that are doubled at the source', async () => {
    const rows = [at(2, 'a', '02 00:00:00'), at(2, 'b', '02 00:00:00')];
    for (const _again of [1, 2]) await load(chunk(), batchOf(rows));
    expect(await content()).toEqual(['1 before', '2 a', '2 b', '4 after', '5 never']);
    expect(await load(chunk())).toMatchObject({ rows_loaded: 0, rows_deleted: 2 });
    expect(await content()).toEqual(outside);
  });

  test('may have no limit on one side, and begin at an instant', async () => {
    await load(chunk({ replace_window: { column: 'at', start: null, end: '2025-01-02T23:59:59.999Z' } }));
    expect(await content()).toEqual(['3 last moment', '4 after', '5 never']);
    await load(chunk({ replace_window: { column: 'at', start: '2025-01-02T23:59:59.999Z', end: null } }));
    expect(await content()).toEqual(['5 never']);
    const none = chunk({ replace_window: { column: 'at', start: null, end: null } });
    expect((await errorOf(load(none)))!.code).toBe('invalid_window');
    expect(await content()).toEqual(['5 never']);
  });

  test('is seen whole or not at all: a checkpoint on the way commits nothing', async () => {
    const writer = await open(chunk());
    await writer.write(batchOf([at(7, 'new', '02 01:00:00')]));
    expect(await writer.checkpoint({ cursor: '7' })).toMatchObject({ rows_loaded: 0, rows_deleted: 0 });
    expect(await content()).toEqual(all);
    await writer.write(batchOf([at(8, 'new', '02 02:00:00')]));
    expect(await writer.finish({ cursor: '8' })).toMatchObject({ rows_loaded: 2, rows_deleted: 2 });
    expect(await content()).toEqual([...outside, '7 new', '8 new']);
  });

  test('goes side by side with others into a table that they have to make: none waits for the end of another', async () => {
    const fresh = `fresh_${run}`;
    const next = { column: 'at', start: '2025-01-03', end: '2025-01-04' };
    const both = [
      await open(chunk({ table: fresh })),
      await open(chunk({ table: fresh, replace_window: next })),
    ] as const;
    await both[0].write(batchOf([at(1, 'a', '02 00:00:00')]));
    await both[1].write(batchOf([at(2, 'b', '03 00:00:00')]));
    const counts = await Promise.all(both.map((writer) => writer.finish(null)));
    for (const one of counts) expect(one).toMatchObject({ rows_loaded: 1, rows_deleted: 0 });
    expect(await content(fresh)).toEqual(['1 a', '2 b']);
  });

  test('leaves the old rows where they are when the worker stops, a value is refused, or another has taken over', async () => {
    const stopped = await open(chunk());
    await stopped.write(batchOf([at(7, 'new', '02 01:00:00')]));
    abort.abort(new Error('stop'));
    await stopped.abort();
    abort = new AbortController();
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

  test('is refused when the column keeps other values than the source has: the window cannot be told', async () => {
    for (const type of side.others) {
      await side.sql(
        `create table ${table}_${type} as select id, name, cast(null as char) as ${name === 'mysql' ? 'at' : '"at"'} from ${table}`,
      );
      await side.sql(
        name === 'mysql'
          ? `alter table ${table}_${type} modify at ${type} null`
          : `alter table ${table}_${type} alter "at" set data type ${type}`,
      );
      const error = await errorOf(load(chunk({ table: `${table}_${type}` }), batchOf([at(7, 'new', '02 01:00:00')])));
      expect(error!.code).toBe('window_not_replaceable');
      expect(await content(`${table}_${type}`)).toEqual(all);
    }
  });
});
