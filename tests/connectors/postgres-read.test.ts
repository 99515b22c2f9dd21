import { beforeAll, describe, expect, test } from 'bun:test';
import type { Cell, StreamState } from '../../server/connectors/contract/connector.ts';
import { SchemaChangedError } from '../../server/connectors/contract/errors.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { backends, readAll, requestOf, sourceConfig, streamNamed, twoDatabases } from './postgres-support.ts';
import { until } from '../support/until.ts';
import { errorOf } from './writing.ts';

const sides = twoDatabases();
const run = (sql: string) => sides.source.sql.unsafe(sql);
const ids = (rows: Cell[][]) => rows.map(([id]) => Number(id)).sort((a, b) => a - b);

beforeAll(async () => {
  await run(`create table people (id int primary key, name text, updated_at timestamptz);
    insert into people select g, 'Name ' || g,
      timestamptz '2024-01-01 00:00:00.000001+00' + (g / 3) * interval '1 day' from generate_series(1, 30) g`);
});

describe('incremental', () => {
  const incremental = async (state: StreamState | null, table = 'people', cursor = 'updated_at') =>
    requestOf(await streamNamed(sides.source, table), { sync_mode: 'incremental', cursor_field: [cursor], state });

  test('the state carries microseconds, and what shares its cursor comes once', async () => {
    await run(`create table ticks (id int primary key, at timestamptz);
      insert into ticks select g, timestamptz '2024-01-01 00:00:00.123456+00' from generate_series(1, 10) g`);
    const first = await readAll(sourceConfig(sides.source).ctx, await incremental(null, 'ticks', 'at'));
    expect(ids(first.rows)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(first.state!.cursor).toBe('2024-01-01 00:00:00.123456+00');
    await run(
      `insert into ticks values (11, '2024-01-01 00:00:00.123456+00'), (12, '2024-01-01 00:00:00.123457+00'), (13, '2024-01-01 00:00:00.123455+00')`,
    );
    const second = await readAll(sourceConfig(sides.source).ctx, await incremental(first.state, 'ticks', 'at'));
    expect(ids(second.rows)).toEqual([11, 12, 13]);
    expect(
      (await readAll(sourceConfig(sides.source).ctx, await incremental(second.state, 'ticks', 'at'))).rows,
    ).toEqual([]);
  });

  test('going on from any batch of 12,000 rows with few cursors loses and doubles none', async () => {
    await run(
      `create table many (id int, grp int); insert into many select g, g / 5000 from generate_series(1, 12000) g`,
    );
    const request = await incremental(null, 'many', 'grp');
    const batches = await Array.fromAsync(postgresSource.read(sourceConfig(sides.source).ctx, request));
    expect(batches.length).toBeGreaterThanOrEqual(3);
    for (let stop = 1; stop < batches.length; stop++) {
      const before = batches.slice(0, stop).flatMap(({ rows }) => rows);
      const after = await readAll(sourceConfig(sides.source).ctx, {
        ...request,
        state: JSON.parse(JSON.stringify(batches[stop - 1]!.state)),
      });
      expect(ids([...before, ...after.rows])).toEqual(Array.from({ length: 12000 }, (_, index) => index + 1));
    }
  });

  test('rows without a cursor are read once, with a warning, also when no row has one', async () => {
    await run('create table holes (id int, at date); insert into holes values (1, null), (2, null)');
    const from = sourceConfig(sides.source);
    const first = await readAll(from.ctx, await incremental(null, 'holes', 'at'));
    expect(ids(first.rows)).toEqual([1, 2]);
    expect(from.warnings).toEqual(['null_cursor']);
    expect((await readAll(sourceConfig(sides.source).ctx, await incremental(first.state, 'holes', 'at'))).rows).toEqual(
      [],
    );
    await run("insert into holes values (3, '2024-01-01'), (4, null)");
    const later = sourceConfig(sides.source);
    const second = await readAll(later.ctx, await incremental(first.state, 'holes', 'at'));
    expect(ids(second.rows)).toEqual([3]);
    expect(later.warnings).toEqual(['null_cursor']);
    await run('update holes set at = now() where at is null');
    const full = sourceConfig(sides.source);
    expect((await readAll(full.ctx, await incremental(second.state, 'holes', 'at'))).rows).toHaveLength(3);
    expect(full.warnings).toEqual([]);
  });

  test('no state is given before all rows without a cursor are through', async () => {
    await run(`create table hollow as select g as id, null::date as at from generate_series(1, 11000) g`);
    const batches = await Array.fromAsync(
      postgresSource.read(sourceConfig(sides.source).ctx, await incremental(null, 'hollow', 'at')),
    );
    expect(batches.map(({ state }) => Boolean(state)).slice(-2)).toEqual([false, true]);
    expect(batches.slice(0, -1).some(({ state }) => state)).toBe(false);
  });

  test('a cursor that is masked or not selected still leads', async () => {
    const request = await incremental(null);
    const [id] = request.columns;
    const read = await readAll(sourceConfig(sides.source).ctx, { ...request, columns: [id!] });
    expect(read.rows.every((row) => row.length === 1)).toBe(true);
    expect(read.state!.cursor).toBe('2024-01-11 00:00:00.000001+00');
  });

  test('numbers that are equal but written apart share a boundary', async () => {
    await run('create table prices (id int, p numeric); insert into prices values (1, 1.0), (2, 1.00)');
    const first = await readAll(sourceConfig(sides.source).ctx, await incremental(null, 'prices', 'p'));
    expect((await readAll(sourceConfig(sides.source).ctx, await incremental(first.state, 'prices', 'p'))).rows).toEqual(
      [],
    );
  });
});

describe('one snapshot, one end', () => {
  test('cells of any size and pieces of any cut come whole', async () => {
    await run(`create table wide as select g as id, repeat('ä€😀\\\\	', g * 3000) as t from generate_series(1, 60) g`);
    const { rows } = await readAll(sourceConfig(sides.source).ctx, requestOf(await streamNamed(sides.source, 'wide')));
    expect(rows.every(([id, text]) => text === 'ä€😀\\\\\t'.repeat(Number(id) * 3000))).toBe(true);
    expect(rows.length).toBe(60);
  });

  describe.each(['endless', 'stuck'])('a stop', (name) => {
    test.each(['rows', 'pgcopy-binary'] as const)(
      `cancels the query on the server at once: ${name}, by %s`,
      async (lane) => {
        await run(`create or replace view endless as select g as id, pg_sleep(0.2)::text as s from generate_series(1, 1000000) g;
        create or replace view stuck as select pg_sleep(600)::text as s`);
        const request = requestOf(await streamNamed(sides.source, name));
        const { ctx, abort } = sourceConfig(sides.source);
        const bytes = async () => Array.fromAsync((await postgresSource.copy!(ctx, request, 'pgcopy-binary')).chunks);
        const reading = errorOf(lane === 'rows' ? readAll(ctx, request) : bytes());
        await until(async () => (await backends(sides.source, 'active')) > 0);
        const reason = new Error('stop');
        const start = performance.now();
        abort.abort(reason);
        expect(await reading).toBe(reason as never);
        await until(async () => (await backends(sides.source)) === 0);
        // A second on an idle machine; without a stop, the query would run for more than ten minutes.
        expect(performance.now() - start).toBeLessThan(3_000);
      },
      30_000,
    );
  });

  test('leaving a read early lets the server go too', async () => {
    await run('create view long as select generate_series(1, 100000000) as id');
    for await (const batch of postgresSource.read(
      sourceConfig(sides.source).ctx,
      requestOf(await streamNamed(sides.source, 'long')),
    )) {
      expect(batch.rows.length).toBeGreaterThan(1000);
      break;
    }
    await until(async () => (await backends(sides.source)) === 0);
  });

  test('a slow consumer does not fill the memory', async () => {
    const copy = await postgresSource.copy!(
      sourceConfig(sides.source).ctx,
      requestOf(await streamNamed(sides.source, 'long')),
      'pgcopy-text',
    );
    const pieces = copy.chunks[Symbol.asyncIterator]();
    await pieces.next();
    let rows = -1;
    await until(async () => {
      const still = rows === copy.rows();
      rows = copy.rows();
      await Bun.sleep(50);
      return still;
    });
    expect(rows * 7).toBeLessThan(4 * 1024 * 1024);
    await pieces.return!();
    await until(async () => (await backends(sides.source)) === 0);
  });

  test('a table or column that is gone is a change of the schema', async () => {
    await run('create table gone (id int, v text)');
    const stream = await streamNamed(sides.source, 'gone');
    await run('alter table gone drop column v');
    const column = await errorOf(readAll(sourceConfig(sides.source).ctx, requestOf(stream)));
    expect(column).toBeInstanceOf(SchemaChangedError);
    expect(column!.code).toBe('column_missing');
    await run('drop table gone');
    const copy = await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), 'pgcopy-binary');
    const table = await errorOf(Array.fromAsync(copy.chunks));
    expect(table).toBeInstanceOf(SchemaChangedError);
    expect(table!.code).toBe('table_missing');
  });
});

test('the server waits for a destination that does not take the rows', async () => {
  await run(`create view patience as select current_setting('tcp_user_timeout') as user_timeout`);
  const { rows } = await readAll(
    sourceConfig(sides.source).ctx,
    requestOf(await streamNamed(sides.source, 'patience'), { sync_mode: 'full_refresh' }),
  );
  expect(rows).toEqual([['0']]);
});
