import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { tablesOf } from '../../server/connectors/sqlite/catalog.ts';
import { describeMysql, errorOf, mysqlDatabase, sourceConfig as mysqlContext } from './mysql-support.ts';
import { sourceConfig, twoDatabases } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(60_000);

const sides = twoDatabases();
const maria = mysqlDatabase();
const role = `reader_${crypto.randomUUID().slice(0, 8)}`;
const as = { username: role, password: 'reader' };
test('postgres: a table without read permission is reported as denied, a dropped one as missing', async () => {
  const { source } = sides;
  const { sql } = source;
  await sql.unsafe(
    `create table t (id int primary key); create role ${role} login password 'reader'; grant select on t to ${role}`,
  );
  const { ctx } = sourceConfig(source, as);
  const [stream] = await postgresSource.discover(ctx);
  await sql.unsafe(`revoke select on t from ${role}`);
  expect(await errorOf(postgresSource.describe!(ctx, stream!, null))).toMatchObject({
    code: 'permission_denied',
    type: 'config_error',
  });
  await sql.unsafe('drop table t');
  expect(await postgresSource.describe!(ctx, stream!, null)).toBe(null);
  await sql.unsafe(`drop owned by ${role}; drop role ${role}`);
});

const RESERVED = ['_pipeline_state', '_rejected', '_pipeline_check_1234abcd', 'orders__new_0123abcd'];

test('postgres: tables that a destination keeps for itself are not offered', async () => {
  const { source } = sides;
  for (const name of RESERVED) await source.sql.unsafe(`create table ${name} (id int primary key)`);
  await source.sql.unsafe('create table orders__new (id int)');
  const streams = await postgresSource.discover(sourceConfig(source).ctx);
  expect(streams.map(({ name }) => name)).toEqual(['orders__new']);
});

test('sqlite: tables that a destination keeps for itself are not offered', () => {
  const database = new Database(':memory:');
  for (const name of ['kept', ...RESERVED]) database.run(`create table ${name} (id int)`);
  expect(tablesOf(database).map(({ name }) => name)).toEqual(['kept']);
});

describeMysql('mysql', () => {
  test('tables that a destination keeps for itself are not offered', async () => {
    for (const name of ['kept', ...RESERVED]) await maria.sql(`create table ${name} (id int primary key)`);
    const streams = await mysqlSource.discover(mysqlContext(maria).ctx);
    expect(streams.map(({ name }) => name)).toEqual(['kept']);
  });

  test('a table without read permission is reported as denied, a dropped one as missing', async () => {
    await maria.sql(`create table t (id int primary key); create table other (id int); create user ${role} identified by 'reader';
      grant select on t to ${role}; grant select on other to ${role}`);
    const { ctx } = mysqlContext(maria, as);
    const stream = (await mysqlSource.discover(ctx)).find(({ name }) => name === 't');
    await maria.sql(`revoke select on t from ${role}`);
    expect(await errorOf(mysqlSource.describe!(ctx, stream!, null))).toMatchObject({
      code: 'permission_denied',
      type: 'config_error',
    });
    await maria.sql(`grant select on t to ${role}; drop table t`);
    expect(await mysqlSource.describe!(ctx, stream!, null)).toBe(null);
    await maria.sql(`drop user ${role}`);
  });
});
