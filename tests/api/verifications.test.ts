import { Database } from 'bun:sqlite';
import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { connectionStreams, events } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { closeGate } from '../support/gate.ts';
import { logServer } from '../support/postgres.ts';
import { mariaDbMissing, testMariaDb } from '../support/mariadb.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import { startS3 } from '../support/s3.ts';
import { until } from '../support/until.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';

const s3 = await startS3();
const service = await testDeps({
  role: 'worker',
  config: { EGRESS_ALLOW: [new URL(String(s3.settings.endpoint)).host] },
});
const { deps } = service;
const { call } = testApi(service);
const make = makerOf(call);
const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
const [source, target] = [from, to].map(({ url }) => postgres(url, { max: 1, onnotice: () => {} })) as [
  postgres.Sql,
  postgres.Sql,
];
const app = createApp(deps).listen({ hostname: '127.0.0.1', port: 0 });
const worker = await startWorker(deps);
afterAll(async () => {
  await app.server?.stop(true);
  await worker.stop();
  await source`select pg_drop_replication_slot(slot_name) from pg_replication_slots
    where database = current_database() and not active`;
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
  await s3.close();
});

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;

const destination = await make.connector('destination', 'postgres', postgresParameters(to.url));

/** A connection of one table that has been created in the source, after its first run. */
async function loaded(
  table: string,
  more: { source_id?: string; parameters?: object; stream?: object; connection?: object } = {},
): Promise<Json> {
  const id =
    more.source_id ??
    (await make.connector('source', 'postgres', { ...postgresParameters(from.url), ...more.parameters })).id;
  await until(async () => (await call('GET', `/account_connectors/source/${id}`)).body.catalog_status === 'ready');
  const connection = await make.connection({
    name: uniqueName(table),
    source_id: id,
    destination_id: destination.id,
    streams: [{ name: table, ...more.stream }],
    ...more.connection,
  });
  await run(connection);
  return connection;
}

async function run({ id }: Json): Promise<void> {
  const { body } = await call('POST', `/connections/${id}/run`);
  expect((await runEnded(service, body)).status).toBe('succeeded');
}

async function verify({ id }: Json, body?: object): Promise<Json> {
  const started = await call('POST', `/connections/${id}/verifications`, body);
  expect(started).toMatchObject({ status: 200 });
  let found: Json;
  await until(async () => {
    found = (await call('GET', `/verifications/${started.body}`)).body;
    return found.finished_at !== null;
  });
  return { ...found, stream: found.streams[0] };
}

/** Type, value, and another value that is close to it, or whose hash by PostgreSQL is the same. */
const NATIVE: [type: string, value: string, other: string][] = [
  ['smallint', '-1', '1'],
  ['int', '7', 'null'],
  ['bigint', '1', '4294967296'],
  ['bigint', '-1', '0'],
  ['numeric(12,2)', '12.50', '-12.50'],
  ['numeric', "'NaN'", "'Infinity'"],
  ['numeric', "'-Infinity'", "'Infinity'"],
  ['numeric', '0', 'null'],
  ['real', '1.5', '-1.5'],
  ['double precision', "'NaN'", "'Infinity'"],
  ['boolean', 'false', 'null'],
  ['boolean', 'true', 'false'],
  ['date', "'infinity'", "'-infinity'"],
  ['date', "'2026-01-31'", "'2026-02-01'"],
  ['timestamp', "'infinity'", "'-infinity'"],
  ['timestamptz', "'2026-01-31 00:00+00'", "'2026-01-31 00:00+01'"],
  ['time', "'23:59'", "'24:00'"],
  ['uuid', "'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000010'"],
  ['bytea', "'\\x00'", "'\\x0000'"],
  ['inet', "'10.0.0.1'", "'10.0.0.1/31'"],
  ['jsonb', `'{"a": 5}'`, `'{"a": -5}'`],
  ['text', "''", 'null'],
  ['varchar(9)', "'a'", "'a '"],
];

describe('PostgreSQL to PostgreSQL', () => {
  test('equal until a value is lost, a row is gone, one is too much, and two rows swap a value', async () => {
    await source`create table orders (id int primary key, total numeric(12,2), note text, at timestamptz default now(),
      bytes bigint default 1)`;
    await source`insert into orders select n, n, 'note ' || n from generate_series(1, 20000) n`;
    // Like a large table, of which only some pages are read for the bounds of the ranges.
    await source`update pg_class set reltuples = 2000000 where oid = 'orders'::regclass`;
    const connection = await loaded('orders');
    const equal = await verify(connection);
    expect(equal).toMatchObject({
      status: 'succeeded',
      stream: { status: 'equal', source_rows: 20_000, destination_rows: 20_000, key: ['id'], differences: [] },
    });
    expect(equal.stream.columns).toEqual(['id', 'total', 'note', 'at', 'bytes']);
    await target`update orders set note = null where id = 7`;
    await target`delete from orders where id = 12345`;
    await target`insert into orders values (-1, 1, '')`;
    await target`update orders set total = case id when 501 then 502 else 501 end where id in (501, 502)`;
    // PostgreSQL hashes a bigint by its halves, without regard to their order.
    await target`update orders set bytes = 4294967296 where id = 9`;
    const different = await verify(connection);
    expect(different).toMatchObject({ status: 'failed', error: null });
    expect(different.stream).toMatchObject({ status: 'different', missing: 1, extra: 1, different: 4 });
    const sorted = different.stream.differences.map(({ kind, key }: Json) => `${kind} ${key}`).toSorted();
    expect(sorted).toEqual([
      'different 501',
      'different 502',
      'different 7',
      'different 9',
      'extra -1',
      'missing 12345',
    ]);
    await target`update orders set note = 'lost' where id % 97 = 0`;
    const { stream } = await verify(connection);
    expect(new Set(stream.differences.map(({ key }: Json) => key[0])).size).toBe(100);
    expect(stream).toMatchObject({ different: 4 + Math.floor(20_000 / 97), missing: 1, extra: 1 });
    const reported = await deps.db.select().from(events).where(eq(events.connection_id, connection.id));
    expect(reported.map(({ event }) => event)).toContain('verification_succeeded');
    const failed = reported.filter(({ event }) => event === 'verification_failed').map(({ payload }) => payload);
    expect(failed).toContainEqual(expect.objectContaining({ rows_different: 6, streams_different: ['orders'] }));
  });

  test('every type is equal after a load, and a value that the hash function of its type takes for another is found', async () => {
    await source.unsafe(
      `create table native (id bigint primary key, ${NATIVE.map(([type], at) => `c${at} ${type}`).join(', ')})`,
    );
    const row = NATIVE.map(([, value]) => value).join(', ');
    await source.unsafe(`insert into native select n, ${row} from generate_series(1, ${NATIVE.length}) n`);
    await source.unsafe(`insert into native (id) values (0), (-1)`);
    const connection = await loaded('native');
    const equal = await verify(connection);
    expect(equal).toMatchObject({ status: 'succeeded', stream: { status: 'equal', columns_not_compared: [] } });
    for (const [at, [, , other]] of NATIVE.entries())
      await target.unsafe(`update native set c${at} = ${other} where id = ${at + 1}`);
    const { stream } = await verify(connection);
    expect(stream.differences.map(({ key }: Json) => Number(key[0])).toSorted((a: number, b: number) => a - b)).toEqual(
      NATIVE.map((_, at) => at + 1),
    );
  });

  test('rows that the source has changed since the run are no difference; lost ones are', async () => {
    await source`create table items (id int primary key, note text)`;
    await source`insert into items select n, 'x' from generate_series(1, 100) n`;
    const connection = await loaded('items');
    await source`update items set note = 'y' where id <= 3`;
    await source`insert into items values (101, 'x')`;
    expect(await verify(connection)).toMatchObject({
      status: 'succeeded',
      stream: { status: 'equal', changed_since: 4 },
    });
    await target`update items set note = 'z' where id in (3, 50)`;
    const { stream } = await verify(connection);
    expect(stream).toMatchObject({ status: 'different', different: 1, changed_since: 4 });
  });

  test('masks, renamed and dropped fields, filters; keyed masks are named as not compared', async () => {
    await source`create table people (id bigint primary key, mail text, card text, secret text, age int)`;
    await source`insert into people select n, n || '@x', null, 's' || n, n from generate_series(1, 50) n`;
    const field = (name: string, more: object) => ({ path: [name], ...more });
    const connection = await loaded('people', {
      stream: {
        fields: [
          field('mail', { masking: 'hash_sha256', destination_name: 'mail_hash' }),
          field('card', { selected: false }),
          field('secret', { masking: 'hash_sha256_salted' }),
        ],
        filters: [{ field: 'age', operator: 'gt', value: 10 }],
      },
    });
    const { status, stream } = await verify(connection);
    expect({ status, stream }).toMatchObject({
      status: 'succeeded',
      stream: {
        source_rows: 40,
        columns: ['id', 'mail_hash', 'age'],
        columns_not_compared: [{ name: 'secret', reason: 'masked_with_key' }],
      },
    });
    await target`update people set mail_hash = 'x' where id = 20`;
    expect((await verify(connection)).stream.differences).toEqual([
      { kind: 'different', key: ['20'], changed_since: false },
    ]);
  });

  test('a table without a key, as a multiset; types without a hash, as texts', async () => {
    await source`create table plain (n numeric, j json, x xml, p point, c char(5), i interval, f float8, b bool, a int[])`;
    await source`insert into plain select n, '{"a": 1}', '<a/>', '(1,2)', 'ab', '1 mon', 'NaN', true, '{1,2}'
      from generate_series(1, 500) n, generate_series(1, 2)`;
    const connection = await loaded('plain', { connection: { destination_schema: 'other' } });
    expect(await verify(connection)).toMatchObject({ status: 'succeeded', stream: { key: [], source_rows: 1000 } });
    await target`update other.plain set i = '30 days' where n = 3`;
    await target`delete from other.plain where ctid = (select min(ctid) from other.plain where n = 9)`;
    const { stream } = await verify(connection);
    expect(stream).toMatchObject({ status: 'different', missing: 1, extra: 1, different: 1 });
  });

  test('incremental: rows above the cursor are not loaded yet, deleted ones stay; append: the latest of each key', async () => {
    await source`create table changes (id text primary key, at timestamp not null, n int)`;
    await source`insert into changes select n, '2026-01-01'::timestamp + n * interval '1 s', 0 from generate_series(1, 30) n`;
    const incremental = { sync_mode: 'incremental', cursor_field: ['at'] };
    const merged = await loaded('changes', { stream: { ...incremental, destination_sync_mode: 'append_dedup' } });
    const stream = { ...incremental, destination_sync_mode: 'append', primary_key: [['id']] };
    const appended = await loaded('changes', { stream, connection: { destination_schema: 'history' } });
    await source`update changes set n = 1, at = '2026-02-01' where id = '5'`;
    await run(appended);
    await source`update changes set n = 1, at = '2026-03-01' where id = '6'`;
    await source`delete from changes where id = '9'`;
    expect(await verify(merged)).toMatchObject({ status: 'succeeded', stream: { changed_since: 2, extra: 1 } });
    expect(await verify(appended)).toMatchObject({
      status: 'succeeded',
      stream: { changed_since: 1, extra: 1, destination_rows: 30 },
    });
  });
});

/** Type and values of PostgreSQL, type and values of MariaDB, another value for both. */
const TYPES: [postgres: string, values: string[], mariadb: string, values: string[], other: string][] = [
  ['smallint', ['-32768', 'null'], 'smallint', ['-32768', 'null'], '5'],
  ['bigint', ['9223372036854775807', '0'], 'bigint', ['9223372036854775807', '0'], '5'],
  [
    'numeric',
    ["'12345678901234567890.1200'", "'-0.50'"],
    'decimal(40,10)',
    ["'12345678901234567890.12'", "'-0.5'"],
    '5',
  ],
  ['numeric(12,2)', ['100.00', '0'], 'decimal(12,4)', ['100', '0'], '5'],
  ['boolean', ['true', 'false'], 'bit(1)', ["b'1'", "b'0'"], 'false'],
  ['date', ["'0001-01-01'", "'9999-12-31'"], 'date', ["'1000-01-01'", "'9999-12-31'"], "'2026-01-01'"],
  [
    'timestamp',
    ["'2026-01-31 23:59:59.123456'", "'2026-01-31 00:00:00.12'"],
    'datetime(6)',
    ["'2026-01-31 23:59:59.123456'", "'2026-01-31'"],
    "'2026-01-01'",
  ],
  [
    'timestamptz',
    ["'2026-06-30 23:59:59.5+02'", "'2026-01-31 00:00:00+00'"],
    'timestamp(3) null',
    ["'2026-06-30 23:59:59.5'", "'2026-01-31'"],
    "'2026-01-01'",
  ],
  ['text', ["'ä  '", "''"], 'varchar(20) collate utf8mb4_general_ci', ["'Ä'", "''"], "'5'"],
  ['char(5)', ["'ab'", "'\u20ac'"], 'char(5)', ["'ab'", "'€'"], "'5'"],
  [
    'uuid',
    ["'0A0b0c0d-0000-7000-8000-000000000001'", 'null'],
    'longtext',
    ["'€'", 'null'],
    "'00000000-0000-0000-0000-000000000000'",
  ],
  ['bytea', ["'\\x00ff'", "''"], 'varbinary(10)', ["x'00ff'", "''"], "'5'"],
];
const columns = TYPES.map((_, at) => `c${at}`);

describe.skipIf(mariaDbMissing !== null)('PostgreSQL and MariaDB, by canonical texts', () => {
  async function ends(kind: 'source' | 'destination') {
    const mariadb = await testMariaDb();
    const database = await mariadb.database();
    const { host, port, username, password } = mariadb;
    const parameters = { host, port, username, password, database, ssl_mode: 'disable' };
    return {
      make: () => make.connector(kind, 'mysql', parameters),
      sql: (text: string) => mariadb.sql(text, database),
    };
  }

  test('every type is equal after a load, and each changed value is found', async () => {
    const mariadb = await ends('destination');
    await source.unsafe(
      `create table types (id text primary key, ${TYPES.map(([type], at) => `c${at} ${type}`).join(', ')}, f float8)`,
    );
    const row = (at: number) => TYPES.map(([, values]) => values[at % 2]).join(', ');
    for (let at = 0; at < 20; at += 1) await source.unsafe(`insert into types values ('Key ${at} ', ${row(at)}, 0.1)`);
    const connection = await loaded('types', { connection: { destination_id: (await mariadb.make()).id } });
    const equal = await verify(connection);
    expect(equal).toMatchObject({ status: 'succeeded', stream: { source_rows: 20, destination_rows: 20 } });
    expect(equal.stream.columns).toEqual(['id', ...columns]);
    expect(equal.stream.columns_not_compared).toEqual([{ name: 'f', reason: 'no_common_form' }]);
    for (const [at, [, , , , other]] of TYPES.entries())
      await mariadb.sql(`update types set c${at} = ${other} where id = 'Key ${at} '`);
    const { stream } = await verify(connection);
    expect(stream.differences.map(({ key }: Json) => key[0]).toSorted()).toEqual(
      columns.map((_, at) => `Key ${at} `).toSorted(),
    );
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { repaired: TYPES.length } });
  });

  test('from MariaDB to PostgreSQL', async () => {
    const mariadb = await ends('source');
    await mariadb.sql(
      `create table kinds (id varchar(20) collate utf8mb4_bin primary key, ${TYPES.map(([, , type], at) => `c${at} ${type}`).join(', ')})`,
    );
    for (const at of [0, 1])
      await mariadb.sql(`insert into kinds values ('K${at}', ${TYPES.map(([, , , values]) => values[at]).join(', ')})`);
    for (let at = 2; at < 20; at += 1)
      await mariadb.sql(`insert into kinds (id) values ('${at % 2 ? 'k' : 'K'}${at}')`);
    const { id } = await mariadb.make();
    const connection = await loaded('kinds', { source_id: id });
    expect(await verify(connection)).toMatchObject({
      status: 'succeeded',
      stream: { source_rows: 20, columns: ['id', ...columns] },
    });
    for (const [at, [, , , , other]] of TYPES.entries())
      await target.unsafe(`update kinds set c${at} = ${other} where id ilike 'k${at}'`);
    expect((await verify(connection)).stream).toMatchObject({ different: TYPES.length, missing: 0, extra: 0 });
    await target.unsafe(`delete from kinds where id = 'K18'; insert into kinds (id) values ('too much')`);
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { status: 'equal', repaired: TYPES.length + 2 } });
  });

  test('a MariaDB key whose text differs from that of the comparison is repaired as well', async () => {
    const mariadb = await ends('source');
    await mariadb.sql(`create table priced (at datetime(6), price decimal(8,3), n int, primary key (at, price))`);
    await mariadb.sql(`insert into priced values ('2026-01-31 23:59:59.120000', 1.500, 1), ('2026-02-01', 20.000, 2)`);
    const { id } = await mariadb.make();
    const connection = await loaded('priced', { source_id: id });
    await target`update priced set n = 0`;
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { status: 'equal', repaired: 2 } });
    expect([...(await target`select n from priced order by n`)].map(({ n }) => Number(n))).toEqual([1, 2]);
  });
});

describe('DuckDB', () => {
  const files = join(deps.config.DATA_DIR, 'files');
  mkdirSync(files, { recursive: true });
  const file = join(files, 'verified.duckdb');
  const connector = (kind: 'source' | 'destination', path = 'verified.duckdb') =>
    make.connector(kind, 'duckdb', { path });

  test('from PostgreSQL: every type is equal after a load, and each changed value is found', async () => {
    await source.unsafe(
      `create table kept (id text primary key, ${TYPES.map(([type], at) => `c${at} ${type}`).join(', ')}, f float8)`,
    );
    const row = (at: number) => TYPES.map(([, values]) => values[at % 2]).join(', ');
    for (let at = 0; at < 20; at += 1) await source.unsafe(`insert into kept values ('Key ${at} ', ${row(at)}, 0.1)`);
    const connection = await loaded('kept', { connection: { destination_id: (await connector('destination')).id } });
    const equal = await verify(connection);
    expect(equal).toMatchObject({ status: 'succeeded', stream: { source_rows: 20, destination_rows: 20 } });
    expect(equal.stream.columns).toEqual(['id', ...columns]);
    expect(equal.stream.columns_not_compared).toEqual([{ name: 'f', reason: 'no_common_form' }]);
    const changes = TYPES.map(([, , , , other], at) => `update kept set c${at} = ${other} where id = 'Key ${at} '`);
    await onDuckDb(file, ...changes, "delete from kept where id = 'Key 19 '", 'select 1');
    const { stream } = await verify(connection);
    expect(stream).toMatchObject({ different: TYPES.length, missing: 1, extra: 0 });
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { repaired: TYPES.length + 1 } });
    await onDuckDb(file, 'drop table kept', 'select 1');
    expect((await verify(connection)).stream.reason.code).toBe('destination_table_missing');
  });

  test('to another file: types without a common text are compared by those of DuckDB, texts by their bytes', async () => {
    const rows = 'range(9000) t(i)';
    await onDuckDb(
      join(files, 'origin.duckdb'),
      `create table wide (id bigint primary key, f double, j json, l int[], s varchar collate nocase, seen timestamptz)`,
      `insert into wide select i, i / 3, '{"a": 1}', [i, null], 'x' || i, timestamptz '2026-01-01' + i * interval 1 second from ${rows}`,
      'select 1',
    );
    const connection = await loaded('wide', {
      source_id: (await connector('source', 'origin.duckdb')).id,
      connection: { destination_id: (await connector('destination')).id, destination_schema: 'copy' },
    });
    const equal = await verify(connection);
    expect(equal).toMatchObject({ status: 'succeeded', stream: { destination_rows: 9000, columns_not_compared: [] } });
    await onDuckDb(
      file,
      `update copy.wide set f = nextafter(f, 0::double) where id = 8000`,
      `update copy.wide set s = 'X5' where id = 5`,
      'delete from copy.wide where id = 17',
      'insert into copy.wide (id) values (9001)',
    );
    const { stream } = await verify(connection);
    expect(stream.differences.map(({ kind, key }: Json) => `${kind} ${key}`).toSorted()).toEqual([
      'different 5',
      'different 8000',
      'extra 9001',
      'missing 17',
    ]);
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { status: 'equal', repaired: 4 } });
  });
});

describe('sources without SQL for it, by reading their cells', () => {
  const files = join(deps.config.DATA_DIR, 'files');
  mkdirSync(files, { recursive: true });

  test('SQLite: every portable type, a composite key, rows above the cursor', async () => {
    const database = new Database(join(files, 'shop.sqlite'), { create: true, strict: true });
    database.run(`create table sold (part text, n integer, ok boolean, day date, at timestamp, zoned timestamp, raw blob,
      price real, primary key (part, n))`);
    const insert = database.query('insert into sold values (?, ?, ?, ?, ?, ?, ?, ?)');
    const row = (part: string, n: number, at = '2026-01-31 23:59:59.120') =>
      insert.run(part, n, n % 2, '2026-01-31', at, '2026-01-31T23:59:59Z', Buffer.from([0, n]), 0.1);
    for (let n = 0; n < 50; n += 1) row(n % 3 ? 'Ä 🦆' : 'z', n);
    database.run("insert into sold (part, n, at) values ('', 1, '2026-01-01 00:00:00')");
    const { id } = await make.connector('source', 'sqlite', { path: 'shop.sqlite' });
    const stream = { sync_mode: 'incremental', cursor_field: ['at'], destination_sync_mode: 'append_dedup' };
    const connection = await loaded('sold', { source_id: id, stream });
    row('new', 1, '2026-02-01 00:00:00.000');
    database.close();
    const equal = await verify(connection);
    expect(equal).toMatchObject({ status: 'succeeded', stream: { source_rows: 52, changed_since: 1, extra: 0 } });
    expect(equal.stream.columns).toEqual(['part', 'n', 'ok', 'day', 'at', 'zoned', 'raw']);
    expect(equal.stream.columns_not_compared).toEqual([{ name: 'price', reason: 'no_common_form' }]);
    await target`update sold set ok = not ok where n = 4`;
    await target`update sold set at = at + interval '1 microsecond' where n = 5`;
    await target`update sold set raw = 'x' where n = 6`;
    await target`delete from sold where n = 7`;
    await target`insert into sold values ('z', 99)`;
    const { stream: found } = await verify(connection);
    const lost = found.differences.filter((one: Json) => one.changed_since !== true);
    expect(lost.map(({ kind, key }: Json) => `${kind} ${key}`).toSorted()).toEqual([
      'different z,6',
      'different Ä 🦆,4',
      'different Ä 🦆,5',
      'extra z,99',
      'missing Ä 🦆,7',
    ]);
    // A row that is newer than the cursor, or that only the destination has, stays as it is.
    const [{ untouched }] = (await target`select xmin::text as untouched from sold where n = 8`) as unknown as [Json];
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { repaired: 4, extra: 1, changed_since: 1 } });
    expect(await target`select xmin::text as untouched from sold where n = 8`).toMatchObject([{ untouched }]);
    expect(await target`select encode(raw, 'hex') as raw, ok from sold where n = 6`).toMatchObject([
      { raw: '0006', ok: false },
    ]);
  });

  const MASKS = [
    { path: ['mail'], masking: 'hash_sha256', destination_name: 'mail_hash' },
    { path: ['paid'], masking: 'hash_sha256' },
    { path: ['card'], masking: 'redact' },
    { path: ['name'], masking: 'hash_sha256_salted' },
  ];

  test.each(['sqlite', 'duckdb'])('%s: masks that need no key are compared', async (connector) => {
    const table = `masked_${connector}`;
    const statements = [
      `create table ${table} (id integer primary key, mail text, paid timestamp, card text, name text)`,
      `insert into ${table} values (1, 'a@ä', '2026-01-31 10:00:00', '4', 'n'), (2, null, null, null, null),
        (3, 'c', '2026-01-31 10:00:00.5', '', '')`,
    ];
    const path = `${table}.db`;
    if (connector === 'duckdb') await onDuckDb(join(files, path), ...statements, 'select 1');
    else {
      const database = new Database(join(files, path), { create: true, strict: true });
      for (const statement of statements) database.run(statement);
      database.close();
    }
    const { id } = await make.connector('source', connector, { path });
    const connection = await loaded(table, { source_id: id, stream: { primary_key: [['id']], fields: MASKS } });
    expect(await verify(connection)).toMatchObject({
      status: 'succeeded',
      stream: {
        columns: ['id', 'mail_hash', 'paid', 'card'],
        columns_not_compared: [{ name: 'name', reason: 'masked_with_key' }],
      },
    });
    await target.unsafe(`update ${table} set mail_hash = 'x' where id = 1`);
    await target.unsafe(`update ${table} set card = '***' where id = 2`);
    await target.unsafe(`update ${table} set paid = null where id = 3`);
    const { stream } = await verify(connection);
    expect(stream.differences.map(({ key }: Json) => key[0]).toSorted()).toEqual(['1', '2', '3']);
    expect(await verify(connection, { repair: true })).toMatchObject({ status: 'succeeded', stream: { repaired: 3 } });
  });

  test('SQLite: a row that differs and has left the source by the time of the repair refuses it', async () => {
    const database = new Database(join(files, 'leaving.sqlite'), { create: true, strict: true });
    database.run('create table leaving (id integer primary key, note text)');
    database.run("insert into leaving values (1, 'a'), (2, 'b'), (3, 'c')");
    const { id } = await make.connector('source', 'sqlite', { path: 'leaving.sqlite' });
    const connection = await loaded('leaving', { source_id: id });
    await target`update leaving set note = 'lost' where id <> 1`;
    const before = await target`select * from leaving order by id`;
    const gate = await closeGate(to.url, '_pipeline_state', `new.connection_id::text = '${connection.id}'`);
    const verified = verify(connection, { repair: true });
    await gate.reached();
    database.run('delete from leaving where id = 2');
    database.close();
    await gate.open();
    const { status, stream } = await verified;
    expect({ status, stream }).toMatchObject({
      status: 'failed',
      stream: { status: 'different', different: 2, repaired: 0, reason: { code: 'source_changed' } },
    });
    expect(stream.reason.message).toStartWith('1 of the rows are no longer found in ');
    expect(await target`select * from leaving order by id`).toEqual(before);
  });

  test('files: one with a key is repaired by reading it again', async () => {
    const lines = (...numbers: number[]) => `n,text\n${numbers.map((n) => `${n},t${n}\n`).join('')}`;
    await Bun.write(join(files, 'keyed.csv'), lines(1, 2, 3));
    const { id } = await make.connector('source', 'file', { path: 'keyed.csv', format: 'csv' });
    const connection = await loaded('keyed', { source_id: id, stream: { primary_key: [['n']] } });
    await target`update keyed set text = 'lost' where n = 2`;
    await target`delete from keyed where n = 3`;
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', stream: { status: 'equal', repaired: 2 } });
    expect([...(await target`select text from keyed order by n`)].map(({ text }) => text)).toEqual(['t1', 't2', 't3']);
  });

  test('files: without a key, as a multiset', async () => {
    await Bun.write(join(files, 'seen.csv'), 'n,on,at\n007,TRUE,2026-01-31T10:00:00Z\n8,false,\n8,false,\n');
    const { id } = await make.connector('source', 'file', { path: 'seen.csv', format: 'csv' });
    const connection = await loaded('seen', { source_id: id });
    expect(await verify(connection)).toMatchObject({ status: 'succeeded', stream: { source_rows: 3, key: [] } });
    await target`delete from seen where ctid = (select max(ctid) from seen)`;
    expect((await verify(connection)).stream).toMatchObject({ status: 'different', different: 1 });
  });
});

describe('files as destinations, by reading them', () => {
  const written = join(deps.config.DATA_DIR, 'files', 'written [1]');

  test.each(['csv', 'jsonl', 'parquet'])(
    '%s: every type is equal after a load, and lost rows are found',
    async (format) => {
      const table = `${format}_rows`;
      await source.unsafe(
        `create table ${table} (id text primary key, ${TYPES.map(([type], at) => `c${at} ${type}`).join(', ')})`,
      );
      for (const at of [0, 1])
        await source.unsafe(
          `insert into ${table} values ('Key ${at}', ${TYPES.map(([, values]) => values[at]).join(', ')})`,
        );
      await source.unsafe(`insert into ${table} (id) select 'n' || n from generate_series(1, 20) n`);
      const files = await make.connector('destination', 'file', {
        path: 'written [1]',
        format,
        gzip: format === 'jsonl',
      });
      const connection = await loaded(table, { connection: { destination_id: files.id } });
      const equal = await verify(connection);
      const isNumber = (at: number) => TYPES[at]![0].startsWith('numeric');
      expect(equal).toMatchObject({ status: 'succeeded', stream: { source_rows: 22, destination_rows: 22 } });
      expect(equal.stream.columns).toEqual(['id', ...columns.filter((_, at) => !isNumber(at))]);
      const [name] = await Array.fromAsync(new Bun.Glob(`${table}/*`).scan(written));
      const file = Bun.file(join(written, name!));
      if (format === 'csv') {
        await Bun.write(file, (await file.text()).replace('-32768', '5').replace('n20', 'n21'));
        const { stream } = await verify(connection, { repair: true });
        expect(stream).toMatchObject({ different: 1, missing: 1, extra: 1, reason: { code: 'repair_not_supported' } });
        expect(stream.reason.message).toContain('replaces all rows');
        await run(connection);
        expect(await verify(connection)).toMatchObject({ status: 'succeeded' });
      } else {
        await file.delete();
        expect((await verify(connection)).stream.reason.code).toBe('destination_table_missing');
      }
    },
  );

  test('S3: equal after a load, and a changed value and lost files are found', async () => {
    await source`create table stored_rows (id int primary key, note text)`;
    await source`insert into stored_rows select n, 'note ' || n from generate_series(1, 200) n`;
    const files = await make.connector('destination', 'file', { ...s3.settings, path: 'kept/here', format: 'csv' });
    const connection = await loaded('stored_rows', { connection: { destination_id: files.id } });
    expect(await verify(connection)).toMatchObject({
      status: 'succeeded',
      stream: { source_rows: 200, destination_rows: 200 },
    });
    const [key] = await s3.keys('kept/here/stored_rows/');
    await s3.put(key!, (await s3.get(key!))!.replace('note 7\n', 'note 8\n'));
    const { stream } = await verify(connection);
    expect(stream).toMatchObject({ different: 1, missing: 0, extra: 0, differences: [{ kind: 'different' }] });
    await s3.delete(key!);
    expect((await verify(connection)).stream.reason.code).toBe('destination_table_missing');
  });
});

test('CDC: what the last run could not see is no difference, what it has lost is', async () => {
  await source`create table followed (id int primary key, n int)`;
  await source`insert into followed select n, n from generate_series(1, 40) n`;
  const connection = await loaded('followed', {
    parameters: { replication: 'logical' },
    stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' },
  });
  await source`update followed set n = 0 where id = 1`;
  await run(connection);
  await source`update followed set n = 0 where id in (2, 3)`;
  expect(await verify(connection)).toMatchObject({ status: 'succeeded', stream: { changed_since: 2 } });
  await target`update followed set n = -1 where id in (1, 4)`;
  const fixed = await verify(connection, { repair: true });
  expect(fixed).toMatchObject({ status: 'succeeded', stream: { repaired: 2, changed_since: 2 } });
  await run(connection);
  expect(await verify(connection)).toMatchObject({ stream: { status: 'equal', ranges_different: 0 } });
  await call('DELETE', `/connections/${connection.id}`);
});

describe('repair', () => {
  test('loads exactly the rows that differ again, and leaves the state of the stream', async () => {
    await source`create table fixed (id int, part text, n int, at timestamp, primary key (id, part))`;
    await source`insert into fixed select n, 'it''s ' || n, n, '2026-01-01'::timestamp + n * interval '1 s' from generate_series(1, 700) n`;
    const connection = await loaded('fixed', {
      stream: { sync_mode: 'incremental', cursor_field: ['at'], destination_sync_mode: 'append_dedup' },
    });
    await target`update fixed set n = -1 where id <= 600`;
    await target`delete from fixed where id = 650`;
    const untouched = await target`select xmin::text from fixed where id = 690`;
    const fixed = await verify(connection, { repair: true });
    expect(fixed).toMatchObject({ status: 'succeeded', repair: true, stream: { status: 'equal', repaired: 601 } });
    expect(await target`select xmin::text from fixed where id = 690`).toEqual(untouched);
    await source`insert into fixed values (701, 'x', 1, '2026-02-01')`;
    await run(connection);
    expect(await verify(connection)).toMatchObject({ status: 'succeeded', stream: { destination_rows: 701 } });
  });

  test('removes what the source does not have; a stream without a key is not repaired', async () => {
    await source`create table surplus (id int primary key)`;
    await source`create table loose (id int)`;
    const [keyed, keyless] = [await loaded('surplus'), await loaded('loose')];
    await target`insert into surplus values (1)`;
    await target`insert into loose values (1)`;
    expect((await verify(keyed, { repair: true })).stream).toMatchObject({ status: 'equal', repaired: 1 });
    expect((await verify(keyless, { repair: true })).stream).toMatchObject({
      status: 'different',
      reason: { code: 'repair_not_supported' },
    });
  });
});

describe('POST and GET /connections/{connection_id}/verifications, GET /verifications/{verification_id}', () => {
  test('200: what cannot be compared is named with a reason, and proves nothing', async () => {
    await source`create table copies (id int primary key)`;
    const connection = await loaded('copies', { stream: { destination_sync_mode: 'append' } });
    expect(await verify(connection)).toMatchObject({
      status: 'failed',
      error: { code: 'nothing_compared' },
      stream: { status: 'not_compared', reason: { code: 'keeps_copies' } },
    });
    await deps.db
      .update(connectionStreams)
      .set({ destination_sync_mode: 'overwrite' })
      .where(eq(connectionStreams.connection_id, connection.id));
    await target`drop table copies`;
    expect((await verify(connection)).stream.reason.code).toBe('destination_table_missing');
  });

  test('400: unknown streams, by POST /connections/{connection_id}/verifications; 200: POST /verifications/{verification_id}/stop of an ended one', async () => {
    const connection = await loaded('orders', { connection: { destination_schema: 'again' } });
    const refused = await call('POST', `/connections/${connection.id}/verifications`, { stream_names: ['nothing'] });
    expect([refused.status, refused.body.code]).toEqual([400, 'unknown_stream']);
    const { id } = await verify(connection, { stream_names: ['orders'] });
    const list = await call('GET', `/connections/${connection.id}/verifications`);
    expect(list.body.map((one: Json) => one.id)).toEqual([id]);
    expect(await call('POST', `/verifications/${id}/stop`)).toMatchObject({ status: 200, body: null });
  });
});

test('data-pipelines verify: exit code 0 for equal, 1 with the keys for different rows', async () => {
  const cli = commandLine({ url: `http://127.0.0.1:${app.server!.port}`, key: service.api_key });
  await source`create table cards (id int primary key, n int)`;
  await source`insert into cards select n, n from generate_series(1, 5) n`;
  const { name } = await loaded('cards');
  const equal = await cli.run(['verify', name]);
  expect([equal.code, equal.err]).toEqual([0, '']);
  await target`update cards set n = 0 where id = 3`;
  const { code, out, err } = await cli.run(['verify', name, '--stream', 'cards']);
  expect([code, out, err]).toEqual([
    1,
    expect.stringContaining('public.cards: different 3'),
    expect.stringContaining('Source and destination differ in public.cards'),
  ]);
});
