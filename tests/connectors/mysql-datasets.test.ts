import { beforeAll, expect, test } from 'bun:test';
import type { Cell, Dataset, Filter, StreamState } from '../../server/connectors/contract/connector.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { describeMysql, errorOf, mysqlDatabase, readAll, sourceConfig } from './mysql-support.ts';
import { requestOf } from './postgres-support.ts';

const side = mysqlDatabase();
const contextWith = (datasets: Dataset[]) => ({ ...sourceConfig(side).ctx, datasets });
const discover = (datasets: Dataset[]) => mysqlSource.discover(contextWith(datasets));
async function dataset(sql: string, name = 'wanted') {
  const stream = (await discover([{ name, sql }])).find((one) => one.namespace === null && one.name === name);
  if (!stream) throw new Error(`no stream ${name}`);
  return stream;
}
const rowsOf = async (sql: string, more: Parameters<typeof requestOf>[1] = {}) =>
  (await readAll(sourceConfig(side).ctx, requestOf(await dataset(sql), more))).rows;
const ids = (rows: Cell[][]) => rows.map(([id]) => Number(id)).toSorted((a, b) => a - b);

beforeAll(async () => {
  if (!side.sql) return;
  await side.sql(`create table sales (id int unsigned primary key, name varchar(40), amount decimal(12,2), at timestamp(6) null, seen datetime(3),
      day date, flag bit(1), mask bit(12), raw varbinary(5), ratio float, big bigint unsigned, doc json, kind enum('a', 'b'), spot point, token uuid, took time(2));
    insert into sales select seq, concat('Name ', seq), seq / 4, timestamp '2024-01-01 00:00:00' + interval seq div 3 day, '2024-01-01 10:00:00.123', date '2024-01-01' + interval seq day,
      seq % 2, seq, char(seq), seq / 10, 18446744073709551585 + seq, json_object('n', seq), 'a', point(1, seq), '123e4567-e89b-12d3-a456-426614174000', '-10:00:00.5' from seq_1_to_30`);
});

describeMysql('datasets', () => {
  test('are listed next to tables, without a namespace, with the types of the query', async () => {
    const sql = 'select s.*, concat(name, ?) as shown, sum(amount) over () as total from sales s -- all\n ; '.replace(
      '?',
      "'?'",
    );
    const stream = await dataset(sql);
    expect(stream).toMatchObject({ dataset_sql: sql, is_resumable: true, supports_date_window: true, suggested: true });
    expect(stream.fields.map(({ path, type, source_type }) => [path[0], type, source_type])).toEqual([
      ['id', 'integer', 'int unsigned'],
      ['name', 'string', 'longtext'],
      ['amount', 'number', 'decimal(12,2)'],
      ['at', 'timestamp_tz', 'timestamp(6)'],
      ['seen', 'timestamp', 'datetime(3)'],
      ['day', 'date', 'date'],
      ['flag', 'boolean', 'bit(1)'],
      ['mask', 'string', 'bit(12)'],
      ['raw', 'binary', 'longblob'],
      ['ratio', 'number', 'float'],
      ['big', 'number', 'bigint unsigned'],
      ['doc', 'json', 'json'],
      ['kind', 'string', 'longtext'],
      ['spot', 'string', 'geometry'],
      ['token', 'string', 'uuid'],
      ['took', 'string', 'time(2)'],
      ['shown', 'string', 'longtext'],
      ['total', 'number', 'decimal(34,2)'],
    ]);
    expect((await discover([])).map(({ name }) => name)).toEqual(['sales']);
  });

  test('texts and lists that a query joins are whole, whatever the default of the server is', async () => {
    const limit = async () => (await side.sql('select @@global.group_concat_max_len as n'))[0]!.n;
    const before = await limit();
    // The default of MySQL.
    await side.sql('set global group_concat_max_len = 1024');
    try {
      const joined = "group_concat(seq order by seq separator ',')";
      const [cells] = await rowsOf(`select ${joined} as joined, json_arrayagg(seq) as list from seq_1_to_1000`);
      const numbers = Array.from({ length: 1000 }, (_, at) => at + 1);
      expect(cells![0]).toBe(numbers.join(','));
      expect(JSON.parse(cells![1]!)).toHaveLength(1000);
    } finally {
      await side.sql(`set global group_concat_max_len = ${String(before)}`);
    }
  });

  test('return the same cells as the table, as rows and as bytes', async () => {
    const [table] = await discover([]);
    const query = await dataset('select * from sales # all of them');
    const ctx = () => sourceConfig(side).ctx;
    expect(await readAll(ctx(), requestOf(query))).toEqual(await readAll(ctx(), requestOf(table!)));
    const text = async (stream: typeof query) => {
      const copy = await mysqlSource.copy!(ctx(), requestOf(stream), 'pgcopy-text');
      let found = '';
      for await (const piece of copy.chunks) found += Buffer.from(piece).toString();
      return found;
    };
    expect(await text(query)).toBe(await text(table!));
  });

  test('support filters, masks and windows like tables', async () => {
    const filters: Filter[] = [
      { field: 'name', operator: 'starts_with', value: 'Name 2' },
      { field: 'at', operator: 'lt', value: '2024-01-09' },
    ];
    expect(ids(await rowsOf('select id, name, at from sales', { filters }))).toEqual([2, 20, 21, 22, 23]);
    const stream = await dataset('select id, name as n, day from sales');
    const request = requestOf(stream, { cursor_field: ['day'], window: { start: '2024-01-03', end: '2024-01-05' } });
    request.columns = request.columns.map((column, at) => (at === 1 ? { ...column, masking: 'redact' } : column));
    expect((await readAll(sourceConfig(side).ctx, request)).rows).toEqual([
      ['2', '***', '2024-01-03'],
      ['3', '***', '2024-01-04'],
    ]);
  });

  test('resume from a cursor', async () => {
    const stream = await dataset('select id, at from sales where id <> 5');
    const incremental = (state: StreamState | null) =>
      readAll(
        sourceConfig(side).ctx,
        requestOf(stream, { sync_mode: 'incremental', cursor_field: ['at'], primary_key: [['id']], state }),
      );
    const first = await incremental(null);
    expect(first.rows).toHaveLength(29);
    await side.sql("insert into sales (id, name, at) values (31, 'late', '2024-01-11'), (32, 'later', '2024-02-01')");
    expect(ids((await incremental(first.state)).rows)).toEqual([31, 32]);
    await side.sql('delete from sales where id > 30');
  });

  test('are read with their current types: a number that became text breaks no line', async () => {
    await side.sql('create table loose (id int, note int); insert into loose values (1, 2)');
    const stream = await dataset('select * from loose');
    await side.sql("alter table loose modify note text; update loose set note = 'a\\tb\\nc'");
    expect((await readAll(sourceConfig(side).ctx, requestOf(stream))).rows).toEqual([['1', 'a\tb\nc']]);
    await side.sql('alter table loose drop note, add other int');
    const error = await errorOf(readAll(sourceConfig(side).ctx, requestOf(stream)));
    expect(error!.code).toBe('column_missing');
    await side.sql('drop table loose');
  });

  test.each([
    ['a word wrong', 'selct 1', 'syntax'],
    ['two statements', 'select 1 as a; drop table sales', 'syntax'],
    ['two statements out of the brackets', 'select 1 as a) q; drop table sales; select * from (select 1', 'syntax'],
    ['a change', 'delete from sales', 'syntax'],
    ['no such table', 'select * from nothing_here', 'nothing_here'],
    ['two columns of one name', 'select id, name as id from sales', 'Duplicate column'],
    ['a placeholder', 'select * from sales where id = ?', 'question mark'],
  ])("%s is reported with the dataset's name by check and discovery", async (_, sql, words) => {
    const wrong = [{ name: 'wrong', sql }];
    for (const work of [() => discover(wrong), () => mysqlSource.check(contextWith(wrong))]) {
      const error = await errorOf(work());
      expect(error).toMatchObject({ code: 'invalid_dataset', type: 'config_error' });
      expect(error!.message).toContain('Dataset "wrong"');
      expect(error!.message).toContain(words);
    }
    expect(await side.sql('select count(*) as n from sales')).toEqual([{ n: 30 }]);
  });

  test('are counted by the check; describing a query does not run it', async () => {
    const slow = { name: 'slow', sql: 'select id, sleep(5) as waited from sales' };
    const before = performance.now();
    const { checks } = await mysqlSource.check(contextWith([slow, { name: 'none', sql: 'select null as a, 1 as b' }]));
    expect(checks).toContainEqual({ title: 'Datasets', status: 'passed', message: '2 readable queries' });
    expect(performance.now() - before).toBeLessThan(5_000);
    const { fields } = await dataset('select null as a, 1 as b');
    expect(fields.map(({ type }) => type)).toEqual(['string', 'integer']);
  });
});
