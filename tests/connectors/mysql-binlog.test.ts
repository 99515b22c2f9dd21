import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type {
  Cell,
  ReadRequest,
  ReplicatedBatch,
  StreamSchema,
  StreamState,
} from '../../server/connectors/contract/connector.ts';
import { decodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { StreamsFailed } from '../../server/connectors/contract/replication.ts';
import { EventDecoder } from '../../server/connectors/mysql/binlog/events.ts';
import { assertNext, encodedSet, parsePosition, positionText } from '../../server/connectors/mysql/binlog/gtid.ts';
import { jsonText } from '../../server/connectors/mysql/binlog/values/json-text.ts';
import { effectOf, opensTransaction } from '../../server/connectors/mysql/binlog/statements.ts';
import type { MysqlSourceConfig } from '../../server/connectors/mysql/connection/settings.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { limitHangs } from '../support/hangs.ts';
import { mariaDbMissing, testBinlogServer } from '../support/mariadb.ts';
import { until } from '../support/until.ts';
import { contextOf, requestOf } from './postgres-support.ts';

const describeMysql = describe.skipIf(mariaDbMissing !== null);

describeMysql('the binary log of MariaDB', () => {
  limitHangs();
  let server: Awaited<ReturnType<typeof testBinlogServer>>;
  let database = '';
  beforeAll(async () => {
    server = await testBinlogServer();
    database = await server.database();
  });
  afterAll(async () => {
    await server.sql(`set global log_bin_compress = off; drop database ${database}`);
  });

  const sql = (statements: string) => server.sql(statements, database);
  const context = (more: Partial<MysqlSourceConfig> = {}) => {
    const { host, port, username, password } = server;
    const access = { host, port, username, password, database, ssl_mode: 'disable', replication: 'logical' };
    return contextOf(mysqlSource.config.parse({ ...access, ...more }) as MysqlSourceConfig);
  };
  const streamOf = async (name: string, more?: Partial<MysqlSourceConfig>): Promise<StreamSchema> => {
    const found = (await mysqlSource.discover(context(more).ctx)).find((one) => one.name === name);
    if (!found) throw new Error(`no stream ${name}`);
    return found;
  };

  /** What a read of these tables gives: rows by table with their operation first, and the states after it. */
  async function read(
    streams: { stream: StreamSchema; state: StreamState | null }[],
    test_context = context(),
    as_lines?: ReadonlySet<number>,
  ) {
    const requests = streams.map(
      ({ stream, state }): ReadRequest => ({
        ...requestOf(stream, { sync_mode: 'incremental', state }),
        reader_id: crypto.randomUUID(),
      }),
    );
    const request = { reader_id: crypto.randomUUID(), streams: requests, as_lines };
    const rows: Cell[][][] = streams.map(() => []);
    let lines = 0;
    let states = streams.map(({ state }) => state);
    const batches: ReplicatedBatch[] = [];
    for await (const batch of mysqlSource.replication!.read(test_context.ctx, request)) {
      batches.push(batch);
      for (const { stream, batch: part } of batch.parts) {
        for (const [at, row] of part.rows.entries()) {
          const facts = row.length - 3;
          const operation = part.changes?.[at]?.operation ?? 'read';
          rows[stream]!.push([operation, row[facts]!, ...row.slice(0, facts)]);
        }
        const decoded = part.lines ? decodeCopyText(part.lines.bytes.toString('utf8')) : [];
        lines += decoded.length;
        for (const row of decoded) {
          const facts = row.length - 4;
          const operation = row.at(-1) === 'd' ? 'delete' : 'upsert';
          rows[stream]!.push([operation, row[facts]!, ...row.slice(0, facts)]);
        }
      }
      states = batch.states ?? states;
    }
    return { rows, states, batches, lines, warnings: test_context.warnings };
  }
  const failureOf = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    return error instanceof StreamsFailed ? [...error.failures.values()][0] : error;
  };

  /** By type: values as a statement has them. Each is in a row of its own. */
  const TYPES: [type: string, ...values: string[]][] = [
    ['tinyint', '-128', '127', '0'],
    ['tinyint unsigned', '255', '128'],
    ['smallint', '-32768', '32767'],
    ['smallint unsigned', '65535'],
    ['mediumint', '-8388608', '8388607'],
    ['mediumint unsigned', '16777215'],
    ['int', '-2147483648', '2147483647'],
    ['int unsigned', '4294967295'],
    [
      'bigint',
      '-9223372036854775808',
      '9223372036854775807',
      '-9007199254740993',
      '9007199254740993',
      '-1',
      '4294967296',
    ],
    ['bigint unsigned', '18446744073709551615', '9007199254740993'],
    ['bigint zerofill', '42'],
    ['decimal(8,3) zerofill', '1.5'],
    ['decimal(5,2)', '-999.99', '0.01', '0', '-0.05'],
    ['decimal(65,30)', '12345678901234567890123456789012345.123456789012345678901234567891', '-1e-30'],
    ['decimal(9,9)', '0.000000001', '-0.999999999'],
    ['decimal(18,9) unsigned', '999999999.999999999', '1.5'],
    ['decimal(10,0)', '-1234567890', '7'],
    ['decimal(15,0)', '-123456789012345', '7'],
    ['decimal(14,4)', '-1234567890.0009', '4294967296.5'],
    ['decimal(15,11)', '-9999.12345678901', '0.00000000001'],
    ['float', '0.1', '-3.4e38', '16777217', '1e-20', '123456.7', '0.30000001'],
    ['float(7,3)', '1234.567', '-0.001'],
    ['double', '0.1', '1e15', '1e14', '123456789012345678', '1e-14', '1e-15', '1e-16', '-1.5e300', '5e-324', '0'],
    ['double(12,4)', '12345678.1234', '-0.5'],
    ['bit(1)', "b'0'", "b'1'"],
    ['bit(9)', "b'100000001'", "b'1'"],
    ['bit(64)', "b'1000000000000000000000000000000000000000000000000000000000000001'"],
    ['year', '1901', '2155', "'0000'"],
    ['smallint', '-1'],
    ['mediumint unsigned', '16777215'],
    ['date', "'2026-02-28'", "'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2026-00-10'"],
    ['datetime', "'2026-02-28 23:59:59'", "'0000-00-00 00:00:00'", "'0000-00-00 00:00:00'", "'2026-02-28 23:59:59'"],
    ['datetime(1)', "'2026-02-28 23:59:59.9'"],
    ['datetime(3)', "'2026-02-28 23:59:59.007'"],
    ['datetime(6)', "'9999-12-31 23:59:59.999999'", "'2026-01-01 00:00:00.000001'", "'2026-01-01 00:00:00.000020'"],
    ['timestamp null', "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    ['timestamp(2) null', "'2026-03-29 01:30:00.05'"],
    [
      'timestamp(6) null',
      "'2026-10-25 00:59:59.000009'",
      "'2026-10-25 01:00:00.000009'",
      "'2026-10-25 01:00:00.000009'",
    ],
    ['time', "'-838:59:59'", "'838:59:59'", "'-00:00:01'", "'00:00:00'"],
    ['time(1)', "'-00:00:00.1'", "'12:34:56.7'"],
    ['time(3)', "'-01:02:03.004'", "'-00:59:59.999'"],
    ['time(6)', "'-838:59:58.999999'", "'00:00:00.000001'"],
    ['char(5)', "'ab '", "''", "'äöü'"],
    ['varchar(10)', "'ab  '", "'ÿ😀'", "'\\\\ \\n\\r\\t'"],
    ['varchar(300)', "repeat('ä', 300)"],
    ['varchar(10) character set latin1', "'äöü€'", "x'8182'"],
    ['char(4) character set latin2', "'łąż'"],
    ['varchar(10) character set cp1251', "'Привет'"],
    ['varchar(10) character set ucs2', "'añ€'"],
    ['varchar(10) character set utf16', "'a😀'"],
    ['varchar(10) character set utf16le', "'a😀'"],
    ['varchar(10) character set utf32', "'a😀'"],
    ['varchar(10) character set utf8mb3 collate utf8mb3_bin', "'ß€'"],
    ['varchar(10) character set ascii', "'plain'"],
    ['tinytext', "'tiny'"],
    ['text', "repeat('text ', 1000)"],
    ['mediumtext character set latin1', "'ÄÖ'"],
    ['longtext', "''"],
    ['json', `'{"a": [1, 2.50, 1e400, "\\\\u00e4"], "b": null}'`, `'12345678901234567890.10'`],
    ['binary(4)', "x'01000000'", "x'00000000'", "x'ffff'"],
    ['varbinary(10)', "x'0100'", "''"],
    ['blob', "x'00ff00'"],
    ['longblob', "repeat(x'0102', 5000)"],
    ["enum('a','b,c','''d''','ü')", "'a'", "'b,c'", "'''d'''", "'ü'"],
    ["enum('ü','ö') character set latin1", "'ö'"],
    ["set('x','y','z')", "'x,z'", "''", "'y'"],
    ['uuid', "'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"],
    ['inet4', "'192.168.0.1'", "'0.0.0.0'"],
    ['inet6', "'2001:db8::1:0:0:1'", "'::'", "'::ffff:1.2.3.4'", "'::1.2.3.4'", "'fe80::'", "'1:0:0:2:0:0:0:3'"],
    ['varchar(200) compressed', "repeat('packed ', 20)", "'short'"],
    ['blob compressed', "repeat(x'07', 500)"],
    // The signs of all numbers are in one place of the log: these come after every other type.
    ['smallint', '-2'],
    ['smallint unsigned', '65535'],
    ['int as (id * 2) stored'],
    // What follows them in the log is no line: PostgreSQL cannot store NUL, nor half of a surrogate pair.
    ['varchar(3) character set ucs2', "_ucs2 x'0061d800'"],
    ['varchar(3) character set utf8mb3', "_utf8mb3 x'61eda080'"],
    ['varchar(3)', "'\\0a'"],
  ];

  test('a change gives the cells that a SELECT gives, for every type', async () => {
    const columns = TYPES.map(([type], at) => `c${at} ${type}`).join(', ');
    await sql(`create table types (id int primary key, ${columns}, v int as (id + 1) virtual)`);
    const stream = await streamOf('types');
    const first = await read([{ stream, state: null }]);
    const statements = TYPES.flatMap(([, ...values], at) =>
      values.map((value, row) => [at, `insert into types (id, c${at}) values (${at * 100 + row}, ${value})`] as const),
    );
    const nulls = 'insert into types (id) values (100000)';
    await sql(`set sql_mode = ''; set names utf8mb4; set time_zone = '+00:00';
      ${[...statements.map(([, text]) => text), nulls].join(';')}`);
    for (const zero_dates of ['null', 'keep'] as const) {
      const logged = await read([{ stream, state: first.states[0]! }], context({ zero_dates }));
      const lined = await read([{ stream, state: first.states[0]! }], context({ zero_dates }), new Set([0]));
      expect([lined.rows, lined.warnings]).toEqual([logged.rows, logged.warnings]);
      expect(lined.lines).toBe(statements.length - 3);
      const selected = await read([{ stream, state: null }], context({ zero_dates }));
      const found = new Map(logged.rows[0]!.map((row) => [row[2], row.slice(2)]));
      const differences = selected.rows[0]!.slice(1).flatMap((row) => {
        const other = found.get(row[2]);
        return row
          .slice(2)
          .flatMap((cell, at) =>
            other?.[at] === cell ? [] : [{ type: stream.fields[at]!.source_type, selected: cell, logged: other?.[at] }],
          );
      });
      expect(differences).toEqual([]);
      expect(found.size).toBe(statements.length + 1);
      expect(logged.warnings).toEqual(zero_dates === 'null' ? ['zero_date'] : []);
    }
    expect(stream.fields.map(({ path }) => path[0])).not.toContain('v');
  });

  /** Reads the tables in full, then what `statements` change. */
  async function changesOf(tables: readonly string[], statements: string) {
    const streams = await Promise.all(tables.map((name) => streamOf(name)));
    const first = await read(streams.map((stream) => ({ stream, state: null })));
    await sql(statements);
    const now = await Promise.all(tables.map((name) => streamOf(name)));
    const both = now.map((stream, at) => ({ stream, state: first.states[at]! }));
    const found = await read(both);
    const lined = await read(both, context(), new Set([0]));
    expect([lined.rows, lined.states]).toEqual([found.rows, found.states]);
    return { first, ...found, lines: lined.lines };
  }

  test('changes come in the order of the log, by the columns that the table had', async () => {
    await sql(`create table a (id int primary key, n int, note varchar(20)); create table b (id int, n int);
      insert into a values (1, 10, 'x'), (2, 20, 'y'); insert into b values (1, 1), (1, 1)`);
    const { first, rows, states } = await changesOf(
      ['a', 'b'],
      `start transaction; update a set n = 11 where id = 1; delete from a where id = 2; insert into b values (2, 2);
       update a set id = 3 where id = 1; savepoint s; insert into a values (9, 9, 'no'); rollback to s; commit;
       start transaction; insert into a values (8, 8, 'no'); rollback; delete from b where id = 1 limit 1;
       alter table a add column late int not null default 7; insert into a values (4, 40, 'z', 8);
       alter table a drop column note; update a set n = 41 where id = 4; alter table a rename column n to amount;
       insert into a values (5, 50, 9); truncate table b; insert into b values (6, 6)`,
    );
    expect(first.rows).toEqual([
      [
        ['truncate', null, null, null, null],
        ['read', 'read', '1', '10', 'x'],
        ['read', 'read', '2', '20', 'y'],
      ],
      [
        ['truncate', null, null, null],
        ['read', 'read', '1', '1'],
        ['read', 'read', '1', '1'],
      ],
    ]);
    // Columns: id, amount, late. What a row lacks is read from the table as it is now.
    expect(rows[0]).toEqual([
      ['upsert', 'update', '1', null, null],
      ['delete', 'delete', '2', null, null],
      ['delete', 'delete', '1', null, null],
      ['upsert', 'update', '3', '11', '7'],
      ['upsert', 'insert', '4', '41', '8'],
      ['upsert', 'update', '4', '41', '8'],
      ['upsert', 'insert', '5', '50', '9'],
    ]);
    expect(rows[1]).toEqual([
      ['upsert', 'insert', '2', '2'],
      ['delete', 'delete', '1', '1'],
      ['truncate', 'truncate', null, null],
      ['upsert', 'insert', '6', '6'],
    ]);
    const again = await read([{ stream: await streamOf('a'), state: states[0]! }]);
    expect([again.rows, again.states]).toEqual([[[]], [states[0]!]]);
  });

  test('a transaction larger than a batch has no state inside; a compressed log reads alike', async () => {
    await sql('create table big (id int primary key, filler varchar(200))');
    const { rows, batches, lines } = await changesOf(
      ['big'],
      `set global log_bin_compress = on;
       insert into big select seq, repeat('x', seq % 200) from seq_1_to_45000; set global log_bin_compress = off;
       insert into big values (0, 'last'); update big set id = -id where id between 1 and 2`,
    );
    expect([rows[0]!.length, lines]).toEqual([45_005, 45_005]);
    expect(rows[0]!.slice(-4).map(([operation, , id]) => [operation, id])).toEqual([
      ['delete', '1'],
      ['upsert', '-1'],
      ['delete', '2'],
      ['upsert', '-2'],
    ]);
    expect(rows[0]!.slice(0, -4).every(([, , id, filler]) => id === '0' || filler!.length === Number(id) % 200)).toBe(
      true,
    );
    expect(batches.filter(({ states }) => states === undefined).length).toBeGreaterThan(1);
    expect(batches.at(-1)!.states).toBeDefined();
  });

  const REPLACED: [what: string, statements: string, code: string][] = [
    ['dropped and created', 'drop table t; create table t (id int primary key, n int)', 'table_replaced'],
    ['created again', 'create or replace table t (id int primary key, n int)', 'table_replaced'],
    ['swapped', 'create table u (id int primary key, n int); rename table t to v, u to t', 'table_replaced'],
    ['dropped', 'drop table /* all */ if exists `t`', 'table_missing'],
    [
      'prepared in two phases',
      "xa start 'x'; insert into t values (5, 5); xa end 'x'; xa prepare 'x'; xa commit 'x'",
      'xa_transaction',
    ],
    [
      'changed by a statement',
      "set session binlog_format = 'STATEMENT'; insert into t values (6, 6)",
      'statement_logged',
    ],
    [
      'changed without all columns',
      "set session binlog_row_image = 'MINIMAL'; update t set n = 7",
      'binlog_row_image_not_full',
    ],
    [
      'given a cascade',
      'alter table t add constraint fk foreign key (id) references p (id) on delete cascade',
      'changes_not_logged',
    ],
  ];
  test.each(REPLACED)('a table that was %s is refused, and another one goes on', async (_, statements, code) => {
    await sql(`drop table if exists t, u, v, p, other; create table p (id int primary key); insert into p values (1);
      create table t (id int primary key, n int); insert into t values (1, 1); create table other (id int primary key)`);
    const streams = [await streamOf('t'), await streamOf('other')];
    const { states } = await read(streams.map((stream) => ({ stream, state: null })));
    await sql(`${statements}; insert into other values (1)`);
    const both = streams.map((stream, at) => ({ stream, state: states[at]! }));
    expect(await failureOf(read(both))).toMatchObject({ code });
    if (code === 'statement_logged') return;
    expect((await read([both[1]!])).rows).toEqual([[['upsert', 'insert', '1']]]);
  });

  test('positions that the log does not have are refused by name', async () => {
    await sql('create table kept (id int primary key)');
    const stream = await streamOf('kept');
    const [old] = (await read([{ stream, state: null }])).states;
    const failure = (cursor: string) => failureOf(read([{ stream, state: { cursor } }]));
    const [, server_id, number] = old!.cursor!.split('-');
    expect(await failure('0/15')).toMatchObject({ code: 'invalid_cursor' });
    expect(await failure(`0-1-${Number(number) + 1000}`)).toMatchObject({ code: 'source_went_back' });
    await sql('insert into kept values (1)');
    // A server with other transactions under the same numbers.
    expect(await failure(`0-${Number(server_id) + 1}-${number}`)).toMatchObject({ code: 'source_went_back' });
    await sql('flush binary logs; insert into kept values (2)');
    const [{ File: last } = {}] = await sql('show master status');
    // The server keeps a file until its transactions are on disk.
    await until(async () => {
      await sql(`purge binary logs to '${last as string}'`);
      return (await sql('show binary logs')).length === 1;
    });
    expect(await failureOf(read([{ stream, state: old! }]))).toMatchObject({
      code: 'binlog_purged',
      message: expect.stringContaining('Reset the stream'),
    });
    const request = { ...requestOf(stream, { state: old! }), reader_id: 'r' };
    expect(await mysqlSource.canResume!(context().ctx, request)).toBe(false);
  });

  test('a mark covers what was committed before it, and AUTO_INCREMENT counts what was deleted', async () => {
    await sql('create table numbered (id bigint auto_increment primary key); insert into numbered values (), (), ()');
    const { ctx } = context();
    const { mark, covers } = mysqlSource.replication!;
    const [before, tables] = [await mark(ctx, []), [{ namespace: null, name: 'numbered' }]];
    await sql('delete from numbered where id = 3');
    const after = await mark(ctx, []);
    expect([before, after].map(({ open_writers }) => open_writers)).toEqual([null, null]);
    expect(covers({ cursor: after.position }, before.position)).toBe(true);
    expect(covers({ cursor: before.position }, after.position)).toBe(false);
    expect(await mysqlSource.sequences!(ctx, tables)).toEqual([
      {
        namespace: null,
        name: 'numbered_id_seq',
        columns: [{ namespace: null, table: 'numbered', column: 'id' }],
        last: '3',
        increment: '1',
      },
    ]);
  });

  test('the check names settings and privileges that are missing, and tables that the log does not have', async () => {
    const step = async (more?: Partial<MysqlSourceConfig>) =>
      (await mysqlSource.check(context(more).ctx)).checks.find(({ title }) => title === 'Binary log');
    await sql(`create table parents (id int primary key);
      create table children (id int primary key, p int, foreign key (p) references parents (id) on delete set null);
      create table shapes (id int primary key, at point); create table chinese (id int primary key, t char(4) character set gbk)`);
    const passed = await step();
    expect(passed).toMatchObject({ status: 'passed' });
    for (const name of ['children', 'shapes', 'chinese']) {
      expect(passed!.message).toContain(name);
      expect((await streamOf(name)).change_log).toBeUndefined();
    }
    for (const [name, wrong, right] of [
      ['binlog_format', 'MIXED', 'ROW'],
      ['binlog_row_image', 'MINIMAL', 'FULL'],
      ['binlog_row_metadata', 'MINIMAL', 'FULL'],
    ]) {
      await sql(`set global ${name} = ${wrong}`);
      const statements = [`SET GLOBAL ${name} = ${right}`];
      expect(await step()).toMatchObject({ status: 'failed', statements });
      await sql(`set global ${name} = ${right}`);
    }
    await sql(`create user '${database}' identified by 'p'; grant select on ${database}.* to '${database}'`);
    const reader = { username: database, password: 'p' };
    for (const right of ['BINLOG MONITOR', 'REPLICATION SLAVE']) {
      const denied = await step(reader);
      expect(denied).toMatchObject({ status: 'failed' });
      expect(denied!.statements).toEqual([`GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO '${database}'@'%'`]);
      await sql(`grant ${right} on *.* to '${database}'`);
    }
    expect(await step(reader)).toMatchObject({ status: 'passed' });
    const stream = { ...(await streamOf('parents')), name: 'parents' };
    expect((await read([{ stream, state: null }], context(reader))).states[0]!.cursor).toMatch(/^0-1-\d+$/);
  });
});

/** As MySQL 8.0.33 wrote it. */
describe('the binary log of MySQL', () => {
  const uuid = '3bcf8ae1-e735-11f1-b227-02fc00000001';

  test('a transaction begins with its number by the UUID of the server', () => {
    const event = Buffer.from(
      '7f2a046b21010000004f0000007bfb07000000003bcf8ae1e73511f1b22702fc000000018900000000000000028800000000000000890000000000000021c17d51f06006fc1303a13801001ab0c7bb',
      'hex',
    );
    const gtid = { domain: uuid, server: 1, number: 137n };
    expect(new EventDecoder(true).decode(event)).toEqual({
      kind: 'begin',
      gtid,
      standalone: true,
      seconds: 1795435135,
    });
    event[30]! ^= 1;
    expect(() => new EventDecoder(true).decode(event)).toThrow('wrong checksum');
  });

  test.each([
    [39, 'binlog_row_value_options = PARTIAL_JSON'],
    [40, 'binlog_transaction_compression = ON'],
    [42, 'a GTID with a tag'],
  ])('an event of type %d names what a session used', (type, cause) => {
    const event = Buffer.alloc(40);
    event[4] = type;
    expect(() => new EventDecoder(false).decode(event)).toThrow(`because a session used ${cause}`);
  });

  test('a position is a set without gaps, and the log has to follow it', () => {
    const other = 'ffffffff-e735-11f1-b227-02fc00000001';
    const position = parsePosition(`${other.toUpperCase()}:1,${uuid}:1-137`)!;
    expect(positionText(position)).toBe(`${uuid}:1-137,${other}:1-1`);
    expect(encodedSet(parsePosition(`${uuid}:1-137`)!).toString('hex')).toBe(
      `0100000000000000${uuid.replaceAll('-', '')}010000000000000001000000000000008a00000000000000`,
    );
    for (const gaps of [`${uuid}:1-5:7`, `${uuid}:2-5`, `${uuid}:1-5,${uuid}:1-6`, `${uuid}:tag:1-5`])
      expect(parsePosition(gaps)).toBeNull();
    const next = (number: bigint) => () => assertNext(position, { domain: uuid, server: 1, number });
    expect(next(138n)).not.toThrow();
    for (const number of [137n, 139n]) expect(next(number)).toThrow('where 138 should follow');
  });

  test.each([
    ['0400', 'null'],
    ['0401', 'true'],
    [
      '00050067002700010028000100290001002a0001002b000800023300040000040200040100004b00616266746c6f6e67206b6579030018000501000b0d000c1500000000000000044002c3a402001c00120001001300010000140002180078790000040000000400',
      '{"a": [1, 2.5, "ä"], "b": null, "f": false, "t": true, "long key": {"x": {}, "y": []}}',
    ],
    ['0c1371225c2001201f207f20c280200a09f09f9880', '"q\\"\\\\ \\u0001 \\u001f \u007f \u0080 \\n\\t😀"'],
    [
      '02090064000f1f000f28000f35000f3f000f49000f53000f57000f5a00050000f6070b028000000132f60b130a7ffffffcffffffffff0a08000000000006b9190c08080a0c464106b9190b08e05ef8335dffffff0f0200ff0f01050c080000000000c2b819',
      '[1.50, -3.0000000000, "2026-02-03", "2026-02-03 04:05:06.789000", "-10:11:12.500000", "base64:type15:AP8=", "base64:type15:BQ==", "2026-01-01 00:00:00.000000", 0]',
    ],
    [
      '021700ed000b49000b51000b59000b61000b69000b71000b79000a81000a8900099100079900079d0009a10005008007a9000bad000bb5000bbd000bc5000bcd000bd5000bdd000be500000000000000f03f00003426f56b0c430080e03779c34143355800662deb417e48afbc9af2d77a3e9a9999999999b93f000000000000008050f330a64b9bb601ffffffffffffffff00000000000000807011010090eefeffffffffff00000000ffff00000000901ec4bcd6429b2ba1869b84063d1656e79eaf03d23cbc89d897b2d29c3c0100000000000000e1639d31956ae54392d54d06cff0804400000054346f9d41',
      '[1.0, 1e15, 1e16, 1.5e300, 0.0000001, 0.1, -0.0, 123456789012345680, 18446744073709551615, -9223372036854775808, 70000, -70000, 4294967295, -32768, 65535, 100000000000000.0, 0.00000000000001, 0.000000000000001, 1e-16, 5e-324, 1.2345678901234567e19, 1e22, 123456789.0]',
    ],
  ])('the JSON %s is as a SELECT gives it', (bytes, text) => {
    expect(jsonText(Buffer.from(bytes, 'hex'))).toBe(text);
  });

  test('a damaged JSON value is an error', () => {
    expect(() => jsonText(Buffer.from('0409', 'hex'))).toThrow('unknown literal 9');
    expect(() => jsonText(Buffer.from('0c0571', 'hex'))).toThrow('cut off');
  });

  test.each([
    ['BEGIN', true],
    ["XA START X'61',X'',1", true],
    ['CREATE TABLE `t` (\n  `id` int NOT NULL\n) START TRANSACTION', true],
    ['CREATE TABLE t (id int)', false],
    ["XA COMMIT X'61',X'',1", false],
  ])('%s opens a transaction: %p', (statement, opens) => {
    expect(opensTransaction(statement)).toBe(opens);
  });
});

describe('statements in the log', () => {
  const table = (name: string, database = 'db') => ({ database, name });
  test.each([
    ['BEGIN', { kind: 'nothing' }],
    ['commit', { kind: 'commit' }],
    ['ROLLBACK TO `s`', { kind: 'unlogged_rows' }],
    ['XA COMMIT 0x61,0x,1', { kind: 'commit' }],
    ['truncate t', { kind: 'truncate', tables: [table('t')] }],
    ['/* c */ TRUNCATE TABLE `o``d`.t -- x', { kind: 'truncate', tables: [table('t', 'o`d')] }],
    ['DROP TABLE IF EXISTS a,`b c` /* generated by server */', { kind: 'replace', tables: [table('a'), table('b c')] }],
    ['DROP TEMPORARY TABLE t', { kind: 'nothing' }],
    ['/*!50100 DROP */ TABLE t', { kind: 'replace', tables: [table('t')] }],
    [
      'RENAME TABLE a TO b, x.c TO d',
      { kind: 'replace', tables: [table('a'), table('b'), table('c', 'x'), table('d')] },
    ],
    ['alter table t rename column a to b', { kind: 'nothing' }],
    ['alter table t add c int, rename to u', { kind: 'replace', tables: [table('t'), table('u')] }],
    ["alter table t comment 'RENAME TO x DROP PARTITION'", { kind: 'nothing' }],
    ['ALTER TABLE t DROP PARTITION p0', { kind: 'replace', tables: [table('t')] }],
    ['ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u', { kind: 'replace', tables: [table('t'), table('u')] }],
    ['CREATE OR REPLACE TABLE t (id int)', { kind: 'replace', tables: [table('t')] }],
    ['CREATE TABLE t LIKE u', { kind: 'nothing' }],
    ['DROP DATABASE IF EXISTS `d`', { kind: 'drop_database', database: 'd' }],
    ['insert into t values (1)', { kind: 'unlogged_rows' }],
    ['# Dummy event replacing event type 160 that slave cannot handle.', { kind: 'nothing' }],
    ['# Dummy event replacing event type 99 that slave cannot handle.', { kind: 'unlogged_rows' }],
  ] as const)('%s', (statement, effect) => {
    expect(effectOf(statement, 'db')).toEqual(effect as ReturnType<typeof effectOf>);
  });
});
