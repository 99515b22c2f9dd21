import { expect, setDefaultTimeout, test } from 'bun:test';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
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

describeMysql('mysql', () => {
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
