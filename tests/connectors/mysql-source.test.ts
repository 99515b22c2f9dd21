import { heapStats } from 'bun:jsc';
import { beforeAll, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import type { Cell, Filter, Masking, StreamState } from '../../server/connectors/contract/connector.ts';
import { SchemaChangedError } from '../../server/connectors/contract/errors.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { describeMysql, errorOf, mysqlDatabase, readAll, sourceConfig, streamNamed, threads } from './mysql-support.ts';
import { until } from '../support/until.ts';
import { requestOf } from './postgres-support.ts';

const side = mysqlDatabase();
const ids = (rows: Cell[][]) => rows.map(([id]) => Number(id)).toSorted((a, b) => a - b);
const upTo = (count: number, of: (index: number) => number = (index) => index + 1) =>
  Array.from({ length: count }, (_, index) => of(index));

beforeAll(async () => {
  if (!side.sql) return;
  await side.sql(`
    create table people (id int primary key, name varchar(50) not null, email text character set latin1, active bit(1), updated_at timestamp(6) null,
      born date, upper_name varchar(50) generated always as (upper(name)) stored, balance decimal(30,10), raw varbinary(5), ratio float,
      doc json, big bigint unsigned) comment 'Everybody';
    create table places (town varchar(20), day date, primary key (day, town)) partition by range columns (day) (partition p0 values less than maxvalue);
    create view grown_ups as select id, name from people;
    create table \`Tä \`\`ble'\` (\`I "d\` int primary key, \`select\` text);
    insert into \`Tä \`\`ble'\` values (1, 'x');
    insert into people (id, name, email, active, updated_at, born, balance, raw, ratio, doc, big) select seq, concat('Name ', seq),
      if(seq % 2 = 0, concat(seq, '@é.org'), null), seq % 3 = 0, timestamp '2024-01-01 00:00:00.000001' + interval seq div 3 day,
      date '2000-01-01' + interval seq day, 9007199254740990 + seq, char(seq), seq / 10, json_object('n', seq), 18446744073709551585 + seq from seq_1_to_30`);
});

describeMysql('discovery', () => {
  test('finds tables, whole partitioned tables and views, with types, ordered keys, nullability and cursors', async () => {
    const streams = await mysqlSource.discover(sourceConfig(side).ctx);
    const names = streams.map(({ namespace, name }) => `${namespace}.${name}`);
    expect(names.toSorted()).toEqual(
      ["Tä `ble'", 'grown_ups', 'people', 'places'].map((name) => `${side.database}.${name}`).toSorted(),
    );
    const people = await streamNamed(side, 'people');
    expect(people).toMatchObject({ description: 'Everybody', default_cursor_field: ['updated_at'], suggested: true });
    expect(people.fields.map(({ path, type, nullable }) => [path[0], type, nullable]).slice(0, 7)).toEqual([
      ['id', 'integer', false],
      ['name', 'string', false],
      ['email', 'string', true],
      ['active', 'boolean', true],
      ['updated_at', 'timestamp_tz', true],
      ['born', 'date', true],
      ['upper_name', 'string', true],
    ]);
    expect(people.fields.filter((field) => field.is_cursor_candidate).map(({ path }) => path[0])).toEqual([
      'id',
      'updated_at',
      'born',
      'balance',
      'big',
    ]);
    expect((await streamNamed(side, 'places')).source_defined_primary_key).toEqual([['day'], ['town']]);
    expect((await streamNamed(side, 'grown_ups')).suggested).toBe(false);
  });

  test('unusual names can be read by rows and by bytes; the estimate comes from the optimizer', async () => {
    const stream = await streamNamed(side, "Tä `ble'");
    expect((await readAll(sourceConfig(side).ctx, requestOf(stream))).rows).toEqual([['1', 'x']]);
    const copy = await mysqlSource.copy!(sourceConfig(side).ctx, requestOf(stream), 'pgcopy-text');
    let text = '';
    for await (const piece of copy.chunks) text += Buffer.from(piece).toString();
    expect(text).toBe('1\tx\n');
    expect(copy.rows()).toBe(1);
    await side.sql('analyze table people');
    expect(await mysqlSource.estimate!(sourceConfig(side).ctx, requestOf(await streamNamed(side, 'people')))).toBe(30);
  });
});

describeMysql('texts', () => {
  test('keep halves of surrogate pairs, which UTF-8 cannot hold', async () => {
    await side.sql(`create table halves (id int primary key, three varchar(20) character set utf8mb3, four varchar(20));
      insert into halves values (1, _utf8mb3 x'61eda0bd62efbfbd', '\u{1f98a}'),
        (2, _utf8mb3 x'edb8ad', _utf8mb4 x'eda0bdf09fa68aed9fbfedb28a'), (3, 'whole', 'ëa')`);
    expect((await readAll(sourceConfig(side).ctx, requestOf(await streamNamed(side, 'halves')))).rows).toEqual([
      ['1', 'a\ud83db\ufffd', '\u{1f98a}'],
      ['2', '\ude2d', '\ud83d\u{1f98a}\ud7ff\udc8a'],
      ['3', 'whole', 'ëa'],
    ]);
  });
});

describeMysql('pushed down', () => {
  const filtered = async (...filters: Filter[]) =>
    ids((await readAll(sourceConfig(side).ctx, requestOf(await streamNamed(side, 'people'), { filters }))).rows);

  test.each<[Filter['operator'], string, unknown, number[]]>([
    ['eq', 'id', 3, [3]],
    ['ne', 'id', 3, upTo(30).filter((id) => id !== 3)],
    ['gt', 'id', 28, [29, 30]],
    ['gte', 'born', '2000-01-30', [29, 30]],
    ['lt', 'id', '3', [1, 2]],
    ['lte', 'updated_at', '2024-01-01T00:00:00.000001Z', [1, 2]],
    ['lte', 'updated_at', '2024-01-01T02:00:00.000001+02:00', [1, 2]],
    ['in', 'name', ['Name 1', 'Name 2', "O'Neill"], [1, 2]],
    ['in', 'name', [], []],
    ['not_in', 'id', upTo(28, (index) => index), [28, 29, 30]],
    ['not_in', 'id', [], upTo(30)],
    ['between', 'id', [4, 6], [4, 5, 6]],
    ['contains', 'email', '8@é', [8, 18, 28]],
    ['contains', 'email', '8@É', []],
    ['eq', 'email', '8@é.org', [8]],
    ['eq', 'name', 'name 1', []],
    ['eq', 'name', 'Name 1 ', []],
    ['starts_with', 'name', 'Name 3', [3, 30]],
    ['starts_with', 'name', 'name 3', []],
    ['contains', 'name', '%', []],
    ['is_null', 'email', null, upTo(15, (index) => 2 * index + 1)],
    ['is_not_null', 'email', null, upTo(15, (index) => 2 * index + 2)],
    ['eq', 'active', true, upTo(10, (index) => 3 * index + 3)],
    ['eq', 'name', "\\'; drop table people; --", []],
    ['ne', 'email', '2@é.org', upTo(14, (index) => 2 * index + 4)],
    ['gt', 'balance', '9007199254741018.5', [29, 30]],
    ['eq', 'big', '18446744073709551615', [30]],
    ['eq', 'ratio', 0.3, [3]],
    ['eq', 'raw', '\\x03', [3]],
    ['contains', 'doc', '"n": 30', [30]],
  ])('filter %s on %s by %p', async (operator, field, value, expected) => {
    expect(await filtered({ field, operator, value })).toEqual(expected);
  });

  test('a filter value that is not a number or date is a configuration error', async () => {
    for (const field of ['id', 'born']) {
      const error = await errorOf(filtered({ field, operator: 'eq', value: '1 or 1 = 1' }));
      expect(error!.code).toBe('invalid_filter');
    }
  });

  test("masks hash the text of the row's cell and keep NULL", async () => {
    await side.sql(`create table masked (c char(5), b bit(1), bits bit(9), n decimal(5,2), z int zerofill, y blob, e text, t varchar(9) character set latin1,
        ts timestamp(3) null, d datetime(6), day date, ti time(1), f float, g double, k enum('ä'), j json, p point, yr year, u bigint unsigned);
      insert into masked values ('a  ', 1, 5, 1.5, 7, x'01ff', null, 'ä', '2024-01-01 12:00:00.5', '2024-01-01 12:00:00.000001', '2024-01-01',
        '-100:00:00.1', 16777217, 0.1, 'ä', '{"a": 1}', point(1, 2.5), 2024, 18446744073709551615)`);
    const stream = await streamNamed(side, 'masked');
    const by = (masking: Masking) => requestOf(stream, { columns: stream.fields.map((field) => ({ field, masking })) });
    const read = async (masking: Masking) => (await readAll(sourceConfig(side).ctx, by(masking))).rows[0]!;
    const plain = await read('none');
    const sha = (cell: Cell) => (cell === null ? null : createHash('sha256').update(cell).digest('hex'));
    expect(await read('hash_sha256')).toEqual(plain.map(sha));
    expect(await read('redact')).toEqual(plain.map((cell) => (cell === null ? null : '***')));
    expect(mysqlSource.pushdown.masking).not.toContain('hash_sha256_salted');
  });

  test('a window is half-open, in UTC days', async () => {
    const window = { start: '2024-01-02', end: '2024-01-03T00:00:00.000Z' };
    const request = requestOf(await streamNamed(side, 'people'), { cursor_field: ['updated_at'], window });
    for (const sync_mode of ['full_refresh', 'incremental'] as const) {
      expect(ids((await readAll(sourceConfig(side).ctx, { ...request, sync_mode })).rows)).toEqual([3, 4, 5]);
    }
  });
});

describeMysql('incremental', () => {
  const incremental = async (state: StreamState | null, table: string, cursor: string) =>
    requestOf(await streamNamed(side, table), { sync_mode: 'incremental', cursor_field: [cursor], state });
  const read = async (state: StreamState | null, table: string, cursor: string) =>
    readAll(sourceConfig(side).ctx, await incremental(state, table, cursor));

  test('the state keeps microseconds, and rows that share its cursor are returned once', async () => {
    await side.sql(`create table ticks (id int primary key, at timestamp(6) null);
      insert into ticks select seq, '2024-01-01 00:00:00.123456' from seq_1_to_10`);
    const first = await read(null, 'ticks', 'at');
    expect(ids(first.rows)).toEqual(upTo(10));
    expect(first.state!.cursor).toBe('2024-01-01 00:00:00.123456+00');
    await side.sql(`insert into ticks values (11, '2024-01-01 00:00:00.123456'), (12, '2024-01-01 00:00:00.123457'),
      (13, '2024-01-01 00:00:00.123455')`);
    const second = await read(first.state, 'ticks', 'at');
    expect(ids(second.rows)).toEqual([11, 12, 13]);
    expect((await read(second.state, 'ticks', 'at')).rows).toEqual([]);
  });

  test.each(['grp', 'ratio', 'price'])(
    'resuming from any batch by %s, with few distinct values, neither loses nor duplicates rows',
    async (by) => {
      await side.sql(`create or replace table many (id int, grp int, ratio double, price decimal(20,5));
      insert into many select seq, seq div 5000, seq div 5000 / 3e0, seq div 4000 / 7 from seq_1_to_12000`);
      const request = await incremental(null, 'many', by);
      const batches = await Array.fromAsync(mysqlSource.read(sourceConfig(side).ctx, request));
      expect(batches.length).toBeGreaterThanOrEqual(2);
      for (let stop = 1; stop < batches.length; stop++) {
        const before = batches.slice(0, stop).flatMap(({ rows }) => rows);
        const state = JSON.parse(JSON.stringify(batches[stop - 1]!.state)) as StreamState;
        const after = await readAll(sourceConfig(side).ctx, { ...request, state });
        expect(ids([...before, ...after.rows])).toEqual(upTo(12_000));
      }
    },
  );

  test('rows without a cursor are read once, with a warning', async () => {
    await side.sql('create table holes (id int, at date); insert into holes values (1, null), (2, null)');
    const from = sourceConfig(side);
    const first = await readAll(from.ctx, await incremental(null, 'holes', 'at'));
    expect(ids(first.rows)).toEqual([1, 2]);
    expect(from.warnings).toEqual(['null_cursor']);
    await side.sql("insert into holes values (3, '2024-01-01'), (4, null)");
    const later = sourceConfig(side);
    expect(ids((await readAll(later.ctx, await incremental(first.state, 'holes', 'at'))).rows)).toEqual([3]);
    expect(later.warnings).toEqual(['null_cursor']);
  });

  test('an unselected cursor still works, without the byte lane', async () => {
    const request = await incremental(null, 'people', 'updated_at');
    const [id] = request.columns;
    const { rows, state } = await readAll(sourceConfig(side).ctx, { ...request, columns: [id!] });
    expect(rows.every((row) => row.length === 1)).toBe(true);
    expect(state!.cursor).toBe('2024-01-11 00:00:00.000001+00');
    expect(mysqlSource.byteFormats!(request)).toEqual([]);
  });
});

describeMysql('one snapshot, one end', () => {
  test('a read excludes rows written after its start', async () => {
    await side.sql(
      'create table moving (id int primary key, pad text); insert into moving select seq, repeat(seq, 200) from seq_1_to_20000',
    );
    const stream = await streamNamed(side, 'moving');
    let rows = 0;
    for await (const batch of mysqlSource.read(sourceConfig(side).ctx, requestOf(stream))) {
      if (rows === 0)
        await side.sql(
          'insert into moving select 20000 + seq, seq from seq_1_to_100; delete from moving where id > 19990',
        );
      rows += batch.rows.length;
    }
    expect(rows).toBe(20_000);
  });

  test('a slow consumer pauses the server instead of buffering rows', async () => {
    await side.sql(
      `create table wide (id int, pad longtext); insert into wide select seq, repeat('x', 1000000) from seq_1_to_150`,
    );
    const stream = await streamNamed(side, 'wide');
    // Live memory has to be bounded, not garbage that is still to be collected.
    const held = () => {
      Bun.gc(true);
      return heapStats().heapSize;
    };
    const before = held();
    let looked = 0;
    let rows = 0;
    for await (const batch of mysqlSource.read(sourceConfig(side).ctx, requestOf(stream))) {
      rows += batch.rows.length;
      // A look collects the garbage of all that the process has loaded.
      if (rows > 100 || rows - looked < 25) continue;
      expect(await threads(side, 'select `id`')).toBe(1);
      looked = rows;
      expect(held() - before).toBeLessThan(50e6);
    }
    expect(looked).toBe(100);
    expect(rows).toBe(150);
  });

  test('a row of more than 16 MB, which spans several packets, arrives complete', async () => {
    await side.sql(`set global max_allowed_packet = 67108864`);
    await side.sql(
      `create table huge (id int, pad longtext); insert into huge values (1, repeat('é\\n', 9000000)), (2, 'small')`,
    );
    const { rows } = await readAll(sourceConfig(side).ctx, requestOf(await streamNamed(side, 'huge')));
    expect(rows.map(([id]) => id)).toEqual(['1', '2']);
    expect(rows[0]![1] === 'é\n'.repeat(9_000_000)).toBe(true);
  });

  test('a stop during a sort ends the read and the query on the server', async () => {
    await side.sql('create view slow as select sleep(3000) as id, 1 as at');
    const stream = await streamNamed(side, 'slow');
    for (const lane of ['rows', 'bytes'] as const) {
      const { ctx, abort } = sourceConfig(side);
      const reading = errorOf(
        lane === 'rows'
          ? readAll(ctx, requestOf(stream))
          : Array.fromAsync((await mysqlSource.copy!(ctx, requestOf(stream), 'pgcopy-text')).chunks),
      );
      await until(async () => (await threads(side, 'select `id`')) > 0);
      const reason = new Error('stop');
      abort.abort(reason);
      expect(await reading).toBe(reason as never);
      await until(async () => (await threads(side)) === 0);
    }
  });

  test('a missing table or column is a schema change', async () => {
    await side.sql('create table going (id int, name text)');
    const stream = await streamNamed(side, 'going');
    await side.sql('alter table going drop name');
    expect(await errorOf(readAll(sourceConfig(side).ctx, requestOf(stream)))).toBeInstanceOf(SchemaChangedError);
    await side.sql('drop table going');
    expect(await errorOf(readAll(sourceConfig(side).ctx, requestOf(stream)))).toBeInstanceOf(SchemaChangedError);
  });
});

describeMysql('the origin of a read', () => {
  const { find, compare } = mysqlSource.origin!;
  const context = () => sourceConfig(side).ctx;
  const uuid = (end: string) => `3e11fa47-71ca-11e1-9e33-c80aa94295${end}`;
  const at = (gtids: string | null, server: string | null = null, is_replica = false) => ({
    gtids,
    server,
    is_replica,
  });

  test('is the GTID position of the server, which only grows', async () => {
    const note = async (position: string) => {
      await side.sql(`set global gtid_slave_pos = '${position}'`);
      return (await find(context()))!;
    };
    const before = await note('0-7-5,3-7-9');
    expect(before).toMatchObject({ gtids: '0-7-5,3-7-9', is_replica: false });
    expect(await compare(context(), before, await note('0-8-6,3-7-9'))).toMatchObject({ history: 'kept' });
    const back = await compare(context(), before, await note('0-7-4,3-7-9'));
    expect(back).toMatchObject({ history: 'lost', difference: expect.stringMatching(/0-7-5,3-7-9.* 0-7-4,3-7-9/) });
    await note('');
  });

  test.each([
    // MySQL: sets of transactions, whichever server has them.
    [at(`${uuid('62')}:1-5`, 'a'), at(`${uuid('62')}:1-5:7,${uuid('63')}:1-2`, 'b'), 'kept'],
    [at(`${uuid('62')}:1-5:8-9`, 'a'), at(`${uuid('62')}:1-9`, 'b'), 'kept'],
    [at(`${uuid('62')}:1-5:8-9`, 'a'), at(`${uuid('62')}:1-8`, 'b'), 'lost'],
    [at(`${uuid('62')}:1-5,${uuid('63')}:1`, 'a'), at(`${uuid('62')}:1-9`, 'a'), 'lost'],
    [at(`${uuid('62')}:1-2:tag:4`, 'a'), at(`${uuid('62')}:1-9:tag:1-3`, 'a'), 'lost'],
    [at(`${uuid('62')}:1-5`, 'a'), at(`${uuid('62')}:1-4`, 'b', true), 'kept'],
    // MariaDB: the last transaction of each domain.
    [at('0-1-100'), at('0-2-101,1-1-1'), 'kept'],
    [at('0-1-100,1-1-3'), at('0-1-100,1-1-2'), 'lost'],
    [at('0-1-100,1-1-3'), at('0-1-200'), 'lost'],
    // Without GTIDs.
    [at(null, 'a'), at(null, 'a'), 'kept'],
    [at(null, 'a'), at(null, 'b'), 'unknown'],
    [at(null, 'a'), at(null, 'b', true), 'kept'],
  ] as const)('%j, then %j: %s', async (known, found, history) => {
    expect((await compare(context(), known, found)).history).toBe(history);
  });
});
