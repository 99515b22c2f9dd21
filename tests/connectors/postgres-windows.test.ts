import { beforeEach, describe, expect, test } from 'bun:test';
import type { TargetColumn, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { until } from '../support/until.ts';
import { backends, batchOf, column, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';
import { COLUMNS } from './writing.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';

// What all databases share is in replaced-windows.test.ts.
const { sides, target, open, row, load, content, errorOf, tableName } = targetTables();
const DAY = { column: 'at', start: '2025-01-02', end: '2025-01-03' };
const at = (id: number, name: string, time: string | null) => row(id, name, time && `2025-01-${time}+00`);

let run = 1;
/** A separate stream run, as for a chunk that is loaded again. */
const chunk = (more: Partial<WriteTarget> = {}) => {
  run += 1;
  return { stream_id: `chunk ${run}`, stream_run_id: `chunk ${run}`, replace_window: DAY, ...more };
};
const OLD = [
  at(1, 'before', '01 23:59:59.999999'),
  at(2, 'first moment', '02 00:00:00'),
  at(3, 'last moment', '02 23:59:59.999999'),
  at(4, 'after', '03 00:00:00'),
  at(5, 'never', null),
];
const OUTSIDE = [
  [1, 'before'],
  [4, 'after'],
  [5, 'never'],
];
const indexes = async () =>
  (await sides.destination.sql`select indexname from pg_indexes where tablename = ${tableName()}`).length;

beforeEach(() => load({}, batchOf(OLD)));

describe('an appended window', () => {
  test('is not duplicated by a reload, by rows or by bytes, and leaves no index behind', async () => {
    const rows = [at(2, 'a', '02 00:00:00'), at(2, 'b', '02 00:00:00')];
    for (const _ of [1, 2]) await load(chunk(), batchOf(rows));
    const expected = [
      [1, 'before'],
      [2, 'a'],
      [2, 'b'],
      [4, 'after'],
      [5, 'never'],
    ];
    expect(await content()).toEqual(expected);
    const writer = await open(chunk());
    async function* bytes() {
      yield Buffer.from('2\ta\t2025-01-02 00:00:00+00\n2\tb\t2025-01-02 00:00:00+00\n');
    }
    await writer.pipe!({ format: 'pgcopy-text', chunks: bytes(), rows: () => 2 });
    await writer.finish(null);
    expect(await content()).toEqual(expected);
    expect(await indexes()).toBe(0);
  });
});

describe('the old rows of a window are kept', () => {
  const all = OLD.map(([id, name]) => [Number(id), name!]);

  test('when the connection is lost between the deletion and the commit, and the next attempt replaces them', async () => {
    const { sql, server } = sides.destination;
    const how = chunk();
    const writer = await open(how);
    await writer.write(batchOf([at(7, 'new', '02 01:00:00')]));
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = ${server.database} and application_name = 'data-pipelines'`;
    expect(await errorOf(writer.finish({ cursor: '7' }))).toMatchObject({ retryable: true });
    expect(await content()).toEqual(all);
    const next = await open({ ...how, fence: 2 });
    expect(next.committed).toBe(null);
    await next.write(batchOf([at(7, 'new', '02 01:00:00')]));
    await next.finish({ cursor: '7' });
    expect(await content()).toEqual([...OUTSIDE, [7, 'new']]);
  });

  test('when the worker stops, which leaves no connection behind', async () => {
    const { ctx, abort } = destinationConfig(sides.destination);
    const stopped = await postgresDestination.open(ctx, target(chunk()));
    await stopped.write(batchOf([at(7, 'new', '02 01:00:00')]));
    abort.abort(new Error('stop'));
    await stopped.abort();
    await until(async () => (await backends(sides.destination)) === 0);
    expect(await content()).toEqual(all);
  });
});

test.each<[TargetColumn['type'], string, string[]]>([
  ['date', '2025-01-02', ['2025-01-01', '2025-01-03']],
  ['timestamp', '2025-01-02 23:59:59.999999', ['2025-01-01 23:59:59', '2025-01-03 00:00:00']],
])('the window applies to the column of type %s, whatever its name', async (type, inside, outside) => {
  const odd = `A"t'; ${type}`;
  const columns = [...COLUMNS.slice(0, 2), column(odd, type)];
  const how = { table: `odd_${type}`, columns };
  await load({ ...how, stream_id: odd }, batchOf([inside, ...outside].map((time, index) => row(index, time, time))));
  await load(chunk({ ...how, replace_window: { ...DAY, column: odd } }));
  const left = await sides.destination.sql.unsafe(`select name from "odd_${type}" order by name`);
  expect(left.map(({ name }) => name)).toEqual(outside);
});
