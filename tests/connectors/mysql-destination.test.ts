import { beforeEach, expect, test } from 'bun:test';
import type { LogicalType } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, DataError, FencedError } from '../../server/connectors/contract/errors.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { oldName } from '../../server/connectors/mysql/write/swap.ts';
import { describeMysql, destinationConfig, mysqlDatabase, threads } from './mysql-support.ts';
import { until } from '../support/until.ts';
import { batchOf, column } from './postgres-support.ts';
import { COLUMNS, errorOf, row, writingTo } from './writing.ts';

const side = mysqlDatabase();
const { load, open, tableName, target } = writingTo((wanted) =>
  mysqlDestination.open(destinationConfig(side).ctx, wanted),
);
let table = '';
beforeEach(() => {
  table = tableName();
});
const content = async (name = table) =>
  (await side.sql(`select * from \`${name}\` order by id, name`)).map((one) => [Number(one.id), one.name]);
const tables = async () =>
  (await side.sql(`select table_name as name from information_schema.tables where table_schema = database()`)).map(
    ({ name }) => String(name),
  );
const leftovers = async () => (await tables()).filter((name) => /__(new|old)_/.test(name));

describeMysql('check', () => {
  test('looks at the database of a connection: one that exists, one that may be created, one without rights', async () => {
    const other = await side.server.database();
    const user = `loader_${crypto.randomUUID().slice(0, 8)}`;
    await side.sql(`create user ${user}@'%' identified by 'right'`);
    await side.sql(`grant all on ${side.database}.* to ${user}@'%'`);
    await side.sql(`grant select on ${other}.* to ${user}@'%'`);
    const { ctx } = destinationConfig(side, { username: user, password: 'right' });
    const tablesCheck = async (schema: string) => (await mysqlDestination.check(ctx, { schema })).checks[1];
    expect(await tablesCheck(side.database)).toMatchObject({ title: 'Tables', status: 'passed' });
    expect(await tablesCheck('none_such')).toMatchObject({
      status: 'skipped',
      message: 'There is no database none_such, or this user may not see it. The first run tries to create it',
      statements: [
        'CREATE DATABASE `none_such` DEFAULT CHARACTER SET utf8mb4',
        expect.stringMatching(new RegExp(`^GRANT .* ON \`none_such\`\\.\\* TO '${user}'@'%'$`)),
      ],
    });
    expect(String(await errorOf(tablesCheck(other)))).toContain('denied');
    await side.sql(`drop user ${user}@'%'`);
    await side.sql(`drop database ${other}`);
  });
});

describeMysql('append', () => {
  test('rows and state become visible together at each checkpoint, not before', async () => {
    const writer = await open();
    await writer.write(batchOf([row(1, 'a')]));
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({ rows_loaded: 1 });
    await writer.write(batchOf([row(2, 'b')]));
    expect(await content()).toEqual([[1, 'a']]);
    expect(await writer.finish({ cursor: '2' })).toMatchObject({ rows_loaded: 2, rows_updated: 0 });
    expect(await content()).toEqual([
      [1, 'a'],
      [2, 'b'],
    ]);
    const [state] = await side.sql(
      `select state, state_version, finished from _pipeline_state where stream_id = '${table}'`,
    );
    expect(state).toEqual({ state: '{"cursor":"2"}', state_version: 2, finished: 1 });
  });

  test('a new column is added for the second run, NULL in the rows of the first', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const columns = [...COLUMNS, column('more', 'json')];
    await load({ stream_run_id: 'second', fence: 2, columns }, batchOf([[...row(2, 'a'), '{"x":1}']]));
    expect((await side.sql(`select more from ${table} order by id`)).map(({ more }) => more)).toEqual([
      null,
      '{"x":1}',
    ]);
  });

  test('NULL, the empty string and NUL characters are kept, with and without LOAD DATA', async () => {
    const texts = [null, '', 'a\0b', '\\N', 'NULL', "'", '\t\n\r\\', '\u001a'];
    for (const allowed of [1, 0]) {
      await side.sql(`set global local_infile = ${allowed}`);
      const name = `${table}_${allowed}`;
      await load({ table: name, stream_id: name }, batchOf(texts.map((text, index) => row(index, text))));
      expect((await side.sql(`select name from ${name} order by id`)).map((one) => one.name as never)).toEqual(
        texts as never,
      );
    }
    await side.sql('set global local_infile = 1');
  });

  test('an existing table with another character set stores the same characters, next to bytes', async () => {
    await side.sql(`create table ${table} (id bigint, name varchar(20), bytes blob) character set latin1`);
    const columns = [column('id', 'integer'), column('name', 'string'), column('bytes', 'binary')];
    await load({ columns }, batchOf([['1', 'é', '\\x00ff']]));
    const [one] = await side.sql(`select name, hex(bytes) as bytes from ${table}`);
    expect(one).toEqual({ name: 'é', bytes: '00FF' });
  });

  test('a number with more digits behind the point than in all becomes a column that holds them', async () => {
    const small = { ...column('small', 'number'), source_type: 'numeric(3,5)', dialect: 'postgres' };
    await load({ columns: [small] }, batchOf([['0.00123']]));
    expect(await side.sql(`select cast(small as char) as small from ${table}`)).toEqual([
      { small: '0.00123' },
    ] as never);
  });

  test('a checkpoint without rows keeps its state; a stream without rows creates its table', async () => {
    const writer = await open();
    await writer.checkpoint({ cursor: '5' });
    await writer.abort();
    const second = await open({ fence: 2 });
    expect(second.committed).toMatchObject({ state: { cursor: '5' }, finished: false, same_stream_run: true });
    await second.finish(null);
    expect(await content()).toEqual([]);
  });

  test('an invalid value is an error that names row, column and value, and is rolled back', async () => {
    const columns = [column('id', 'integer'), column('amount', 'number'), column('day', 'date')];
    for (const allowed of [1, 0]) {
      await side.sql(`set global local_infile = ${allowed}`);
      const wrong = [
        ['99999999999999999999', '1', null],
        ['1', 'NaN', null],
        ['1', `0.${'0'.repeat(30)}1`, null],
        ['1', '1e40', null],
        ['1', '1', '2024-02-30'],
      ];
      for (const [index, cells] of wrong.entries()) {
        const name = `${table}_${allowed}_${index}`;
        const good = ['1', '1.5', '2024-02-29'];
        const error = await errorOf(
          load({ columns, table: name, stream_id: name }, batchOf([good]), batchOf([good, cells])),
        );
        expect(error).toBeInstanceOf(DataError);
        expect(error!.message).toMatch(/(id|amount|day).* at row 3\b|row 3: amount/);
        if (allowed) expect(error!.message).toContain(cells.find((cell) => cell !== null && cell !== '1') ?? '');
        expect((await side.sql(`select count(*) as n from ${name}`))[0]!.n).toBe(0);
      }
    }
    await side.sql('set global local_infile = 1');
  });

  test.each([
    ['int', 'number', '1.5'],
    ['bigint unsigned', 'number', '15e-1'],
    ['int', 'string', '12 apples'],
    ["enum('a', 'b')", 'string', '1'],
    ["set('a', 'b')", 'string', '3'],
    ['bit(16)', 'string', '41'],
    ['varbinary(9)', 'binary', '\\x00zz'],
    ['year', 'integer', '9999'],
    ['decimal(5,2)', 'number', '1.239'],
    ['date', 'string', '2024-01-31 and more'],
  ] as const)('a value that the server would alter is rejected: %s of %s %s', async (type, given, cell) => {
    for (const allowed of [1, 0]) {
      await side.sql(`set global local_infile = ${allowed}`);
      const name = `${table}_${allowed}`;
      await side.sql(`create table ${name} (id bigint, name ${type})`);
      const columns = [column('id', 'integer'), column('name', given)];
      const error = await errorOf(load({ columns, table: name, stream_id: name }, batchOf([['1', cell]])));
      expect(error).toBeInstanceOf(DataError);
    }
    await side.sql('set global local_infile = 1');
  });

  test.each(['stored', 'virtual'])(
    'a column that the server computes (%s) is refused, unless it is not loaded',
    async (how) => {
      await side.sql(`create table ${table} (id bigint, name text, twice bigint as (id * 2) ${how})`);
      const columns = [column('id', 'integer'), column('Twice', 'integer')];
      const error = await errorOf(load({ columns }, batchOf([['1', '1']])));
      expect(error).toMatchObject({
        code: 'column_is_generated',
        message: expect.stringContaining(`column Twice of ${table}`),
      });
      await load({}, batchOf([row(1, 'a')]));
      expect(await side.sql(`select id, twice from ${table}`)).toEqual([{ id: 1, twice: 2 }]);
    },
  );

  test.each(['append', 'append_dedup'] as const)('0 stays 0 in a column that numbers its rows (%s)', async (mode) => {
    await side.sql(`create table ${table} (id bigint primary key auto_increment, name text)`);
    await load({ mode, primary_key: ['id'] }, batchOf([row(-5, 'a'), row(0, 'b'), row(1, 'c')]));
    expect(await content()).toEqual([
      [-5, 'a'],
      [0, 'b'],
      [1, 'c'],
    ]);
  });

  /** The server makes NULL the present time there, or the next number. */
  const FILLED = [
    ['timestamp(6) not null', 'timestamp_tz'],
    ['bigint not null auto_increment', 'integer'],
  ] as const;
  const filledTable = async (type: string, name = table) => {
    await side.sql(`create table ${name} (id bigint primary key, v ${type}, key (v))`);
    return { table: name, stream_id: name, primary_key: ['id'] };
  };
  const valued = (type: LogicalType) => [
    { ...column('id', 'integer'), dialect: 'postgres' },
    { ...column('v', type), dialect: 'postgres' },
  ];
  const CELL = { integer: '7', timestamp_tz: '2026-01-31 00:00:00+00' };
  const REFUSED = { code: 'null_value', message: expect.stringMatching(/row 2: v is NULL/) };

  for (const [type, given] of FILLED) {
    test.each(['append', 'append_dedup', 'overwrite'] as const)(
      `NULL is refused by a column that the server would fill: ${type} (%s)`,
      async (mode) => {
        for (const allowed of [1, 0]) {
          await side.sql(`set global local_infile = ${allowed}`);
          const place = await filledTable(type, `${table}_${allowed}`);
          const rows = [
            ['1', CELL[given]],
            ['2', null],
          ];
          const error = await errorOf(load({ ...place, mode, columns: valued(given) }, batchOf(rows)));
          // An overwrite sees it when the new rows are copied into a table that has to stay.
          expect(error).toMatchObject(mode === 'overwrite' ? { code: 'null_value' } : REFUSED);
          expect(await side.sql(`select * from ${place.table}`)).toEqual([]);
          await load(
            { ...place, mode, fence: 2, stream_run_id: 'second', columns: valued(given) },
            batchOf(rows.slice(0, 1)),
          );
          expect(await side.sql(`select id from ${place.table}`)).toEqual([{ id: 1 }]);
        }
        await side.sql('set global local_infile = 1');
      },
    );
  }

  test('NULL in bytes is refused by a column that numbers its rows', async () => {
    const place = await filledTable('bigint not null auto_increment');
    const writer = await open({ ...place, columns: valued('integer') });
    expect(writer.byteFormats).toEqual(['pgcopy-text']);
    const copied = (text: string) =>
      writer.pipe!({
        format: 'pgcopy-text',
        chunks: (async function* () {
          yield Buffer.from(text);
        })(),
      } as never);
    expect(await errorOf(copied('1\t7\n2\t\\N\n'))).toMatchObject(REFUSED);
    await writer.abort();
    expect(await side.sql(`select * from ${table}`)).toEqual([]);
  });

  test('NULL that the server would replace is kept as a rejected row', async () => {
    const place = await filledTable('timestamp(6) not null');
    const wanted = { ...place, columns: valued('timestamp_tz'), rejects: { limit: 5 } };
    const counts = await load(
      wanted,
      batchOf([
        ['1', null],
        ['2', CELL.timestamp_tz],
      ]),
    );
    expect(counts).toMatchObject({ rows_loaded: 1, rows_rejected: 1 });
    expect(await side.sql(`select id from ${table}`)).toEqual([{ id: 2 }]);
  });

  test('changes that do not write such a column are merged', async () => {
    const place = await filledTable('timestamp not null');
    await side.sql(`insert into ${table} values (1, '2026-01-31'), (2, '2026-01-31')`);
    const changes = [{ operation: 'delete' as const }, { operation: 'upsert' as const, unchanged: [1] }];
    const rows = [
      ['1', null],
      ['2', null],
    ];
    await load({ ...place, mode: 'append_dedup', columns: valued('timestamp_tz') }, { ...batchOf(rows), changes });
    expect(await side.sql(`select id, cast(v as char) as v from ${table}`)).toEqual([
      { id: 2, v: '2026-01-31 00:00:00' },
    ]);
  });

  test.each(['append_dedup', 'overwrite'] as const)(
    'NULL is refused as a key that is a TIMESTAMP (%s)',
    async (mode) => {
      const key = { ...column('v', 'timestamp_tz'), source_type: 'timestamp', dialect: 'mysql' };
      const wanted = { mode, primary_key: ['v'], columns: [column('id', 'integer'), key] };
      const rows = [
        ['1', CELL.timestamp_tz],
        ['2', null],
      ];
      expect(await errorOf(load(wanted, batchOf(rows)))).toMatchObject(REFUSED);
    },
  );

  test('non-transactional tables and views are rejected', async () => {
    await side.sql(`create table ${table} (id int) engine = MyISAM; create view view_${table} as select 1 as id`);
    expect((await errorOf(open()))!.code).toBe('not_transactional');
    expect((await errorOf(open({ table: `view_${table}` })))!.code).toBe('not_a_table');
  });
});

describeMysql('overwrite', () => {
  const mode = 'overwrite' as const;

  test('readers see the old rows until the new ones replace them all', async () => {
    await load({ mode }, batchOf([row(1, 'old'), row(2, 'old')]));
    const writer = await open({ mode, fence: 2, stream_run_id: 'second' });
    await writer.write(batchOf([row(3, 'new')]));
    expect(await writer.checkpoint({ cursor: null })).toMatchObject({ rows_loaded: 0 });
    expect((await content()).length).toBe(2);
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: 1 });
    expect(await content()).toEqual([[3, 'new']]);
    expect(await leftovers()).toEqual([]);
  });

  test('a crash between commit and swap is repaired when the stream is opened next', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const writer = await open({ mode, fence: 2, stream_run_id: 'second' });
    await writer.write(batchOf([row(2, 'new')]));
    // A reader's transaction delays the swap, and the connection is lost while it waits.
    const reader = side.sql(`start transaction; select * from ${table}; select sleep(3); commit`);
    await until(async () => (await threads(side, 'sleep')) > 0);
    const finishing = errorOf(writer.finish(null));
    await until(async () => (await threads(side, 'rename table')) > 0);
    const [waiting] = await side.server.sql(
      `select id from information_schema.processlist where db = '${side.database}' and info like 'rename table%'`,
    );
    await side.server.sql(`kill ${String(waiting!.id)}`);
    expect(await finishing).not.toBeNull();
    await writer.abort();
    expect(await content()).toEqual([[1, 'old']]);
    await reader;
    const next = await open({ mode, fence: 3, stream_run_id: 'second' });
    expect(next.committed).toMatchObject({ finished: true, counts: { rows_loaded: 1 } });
    await next.abort();
    expect(await content()).toEqual([[2, 'new']]);
    expect(await leftovers()).toEqual([]);
  });

  test('an abort leaves no table behind; the next open removes those of a killed worker', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const writer = await open({ mode, fence: 2 });
    await writer.write(batchOf([row(2, 'new')]));
    expect((await leftovers()).length).toBe(1);
    await writer.abort();
    expect(await leftovers()).toEqual([]);
    const killed = await open({ mode, fence: 3 });
    await killed.write(batchOf([row(2, 'new')]));
    const ids = await side.server.sql(`select id from information_schema.processlist where db = '${side.database}'`);
    for (const { id } of ids) await side.server.sql(`kill ${String(id)}`);
    expect((await leftovers()).length).toBe(1);
    await (await open({ mode, fence: 4 })).abort();
    expect(await leftovers()).toEqual([]);
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('views, indexes, triggers and grants keep working', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await side.sql(
      `create view view_${table} as select name from ${table}; create index i on ${table} (at);
       create table log_${table} (id int); create trigger g_${table} after insert on ${table} for each row insert into log_${table} values (new.id)`,
    );
    const columns = [...COLUMNS, column('more', 'string')];
    await load({ mode, fence: 2, columns }, batchOf([[...row(2, 'new'), 'x']]));
    expect(await side.sql(`select * from view_${table}`)).toEqual([{ name: 'new' }]);
    expect(await side.sql(`select * from log_${table}`)).toEqual([{ id: 2 }]);
    expect((await side.sql(`show index from ${table} where Key_name = 'i'`)).length).toBe(1);
    expect(await leftovers()).toEqual([]);
  });

  test('a table referenced by foreign keys is rejected and stays unchanged', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await side.sql(`create table child_${table} (id bigint, foreign key (id) references ${table} (id))`);
    const error = await errorOf(load({ mode, fence: 2 }, batchOf([row(2, 'new')])));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error!.code).toBe('table_is_referenced');
    expect(await content()).toEqual([[1, 'old']]);
    await side.sql(`drop table child_${table}`);
  });

  test('rows with the same key are a data error, and the old rows stay', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const error = await errorOf(load({ mode, fence: 2 }, batchOf([row(2, 'a'), row(2, 'b')])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('duplicate_key');
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('text keys distinguish case and trailing blanks', async () => {
    const columns = [column('id', 'string'), column('name', 'string')];
    const keys = ['a', 'A', 'a ', 'á', ''];
    await load({ mode, columns }, batchOf(keys.map((key) => [key, 'x'])));
    const rows = await side.sql(`select id from ${table}`);
    expect(rows.map(({ id }) => String(id)).toSorted()).toEqual(keys.toSorted());
  });
});

describeMysql('append_dedup', () => {
  const mode = 'append_dedup' as const;

  test('a table with a second unique key is rejected', async () => {
    await side.sql(`create table ${table} (id bigint primary key, name text, at datetime, unique key other (at))`);
    expect((await errorOf(open({ mode, fence: 2 })))!.code).toBe('other_unique_key');
  });
});

describeMysql('fences and aborts', () => {
  test('a newer attempt fences off an older one, and concurrent attempts do not deadlock', async () => {
    const older = await open({ fence: 1 });
    await older.write(batchOf([row(1, 'older')]));
    const newer = await open({ fence: 2 });
    expect(await errorOf(older.checkpoint({ cursor: 'x' }))).toBeInstanceOf(FencedError);
    await older.abort();
    await newer.write(batchOf([row(2, 'newer')]));
    await newer.finish(null);
    expect(await content()).toEqual([[2, 'newer']]);
    expect(await errorOf(open({ fence: 1 }))).toBeInstanceOf(FencedError);
  });

  test('an aborted signal cancels a statement on the server', async () => {
    await load({}, batchOf([row(1, 'a')]));
    const { ctx, abort } = destinationConfig(side);
    const writer = await mysqlDestination.open(ctx, target({ fence: 2 }));
    const locking = side.sql(`lock tables ${table} write; select sleep(5)`);
    await until(async () => (await threads(side, 'sleep')) > 0);
    const writing = errorOf(writer.write(batchOf([row(2, 'b')])).then(() => writer.finish(null)));
    await until(async () => (await threads(side, 'load data')) > 0);
    const reason = new Error('stop');
    abort.abort(reason);
    expect(await writing).toBe(reason as never);
    await writer.abort();
    expect(await threads(side, 'load data')).toBe(0);
    await locking;
    expect(await content()).toEqual([[1, 'a']]);
  });
});

describeMysql('names', () => {
  test('quotes, spaces and every alphabet in database, table and column, in each mode', async () => {
    const odd = 'Ta`b\'le; — 表 %s \\"';
    for (const mode of ['append', 'overwrite', 'append_dedup'] as const) {
      const columns = [column('I `d', 'integer'), column('select', 'string'), column('Ünï', 'string')];
      const schema = `${side.database} \`x ${mode}`;
      const more = { schema, table: odd, columns, primary_key: ['I `d'], mode, stream_id: `odd ${mode}` };
      await load(more, batchOf([['1', 'a', 'b']]));
      await load({ ...more, fence: 2 }, batchOf([['2', 'a', 'b']]));
      const quoted = (name: string) => `\`${name.replaceAll('`', '``')}\``;
      const rows = await side.sql(`select * from ${quoted(schema)}.${quoted(odd)}`);
      expect(rows.length).toBe(mode === 'overwrite' ? 1 : 2);
      await side.sql(`drop database ${quoted(schema)}`);
    }
  });

  test('names that the server would reject or confuse are rejected early; the longest name works in each mode', async () => {
    const long = 'ä'.repeat(65);
    expect((await errorOf(open({ table: long })))!.code).toBe('name_too_long');
    expect((await errorOf(open({ columns: [column(long, 'string')] })))!.code).toBe('name_too_long');
    expect((await errorOf(open({ columns: [column('😀', 'string')] })))!.code).toBe('invalid_name');
    for (const name of ['DB_ROW_ID', 'db_trx_id', 'DB_ROLL_PTR']) {
      await expect(side.sql(`create table reserved (\`${name}\` text)`)).rejects.toThrow('Incorrect column name');
      expect((await errorOf(open({ columns: [column(name, 'string')] })))!.code).toBe('reserved_name');
    }
    const twice = [column('a', 'string'), column('A', 'string')];
    expect((await errorOf(open({ columns: twice })))!.code).toBe('duplicate_column');
    const longest = 'é'.repeat(64);
    for (const mode of ['overwrite', 'append_dedup', 'append'] as const) {
      await load({ table: longest, mode, stream_id: mode }, batchOf([row(1, 'a')]));
      await load({ table: longest, mode, stream_id: mode, fence: 2 }, batchOf([row(2, 'a')]));
      await side.sql(`drop table \`${longest}\``);
    }
  });
});

describeMysql('side by side', () => {
  test('many streams can be opened at once in a new database', async () => {
    const schema = `${side.database}_new`;
    const streams = Array.from({ length: 9 }, (_, index) => `parallel_${index}`);
    await Promise.all(
      streams.map(async (name, index) => {
        const mode = (['append', 'overwrite', 'append_dedup'] as const)[index % 3]!;
        const writer = await open({ schema, table: name, stream_id: name, mode });
        await writer.write(batchOf([row(1, name)]));
        await writer.checkpoint({ cursor: '1' });
        await writer.finish(null);
      }),
    );
    const made = await side.sql(`select count(*) as n from information_schema.tables where table_schema = '${schema}'`);
    expect(Number(made[0]!.n)).toBe(10);
    await side.sql(`drop database ${schema}`);
  });

  test('every statement is recorded, without the password', async () => {
    const { ctx, entries } = destinationConfig(side);
    const writer = await mysqlDestination.open(ctx, target());
    await writer.write(batchOf([row(1, 'a')]));
    await writer.finish(null);
    expect(new Set(entries.map(({ method }) => method))).toEqual(new Set(['CONNECT', 'QUERY', 'LOAD']));
    expect(entries.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(entries.map(({ url }) => url))).toEqual(
      new Set([`mysql://127.0.0.1:${side.server.port}/${side.database}`]),
    );
    expect(JSON.stringify(entries)).not.toContain(side.server.password);
  });
});

describeMysql('tables that are published together', () => {
  test('are all renamed or none, also after a worker that was killed after the rename', async () => {
    const { ctx } = destinationConfig(side);
    const names = [`${table}_a`, `${table}_b`];
    const complete = async (at: number) => {
      const publish_with = `run/${at}`;
      const streams = names.map((name) => ({ stream_id: name, stream_run_id: `${name}_${at}`, fence: at }));
      for (const { stream_id, ...claim } of streams) {
        await load({ table: stream_id, stream_id, mode: 'overwrite', publish_with, ...claim }, batchOf([row(at, 'x')]));
      }
      return { connection_id: 'connection', schema: null, publish_with, streams };
    };
    const shown = async () => [await content(names[0]), await content(names[1])];
    const all = (at: number) => names.map(() => [[at, 'x']]);

    const first = await complete(1);
    expect(await tables()).not.toContain(names[0]!);
    await mysqlDestination.publish!(ctx, first);
    expect(await shown()).toEqual(all(1));

    const second = await complete(2);
    expect(await shown()).toEqual(all(1));
    const states = await side.sql(`select ready from _pipeline_state where stream_id like '${table}%'`);
    const renames = states.map(({ ready }) => {
      const swap = JSON.parse(String(ready)) as { table: string; fresh: string };
      return `${swap.table} to ${oldName(swap)}, ${swap.fresh} to ${swap.table}`;
    });
    await side.sql(`update _pipeline_state set ready = json_set(ready, '$.replaces', true) where ready is not null`);
    await side.sql(`rename table ${renames.join(', ')}`);
    for (let call = 0; call < 2; call++) await mysqlDestination.publish!(ctx, second);
    expect(await shown()).toEqual(all(2));
    expect(await leftovers()).toEqual([]);

    const third = await complete(3);
    expect(await errorOf(mysqlDestination.publish!(ctx, second))).toBeInstanceOf(FencedError);
    const ended = third.streams.map((one) => ({ ...one, fence: 4 }));
    await mysqlDestination.discard!(ctx, { ...third, streams: ended });
    expect(await errorOf(mysqlDestination.publish!(ctx, third))).toBeInstanceOf(FencedError);
    expect(await shown()).toEqual(all(2));
    expect(await leftovers()).toEqual([]);
  });
});
