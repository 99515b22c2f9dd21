import { describe, expect, test } from 'bun:test';
import { slotName } from '../../server/connectors/postgres/cdc/replication-slots.ts';
import { type Follower, followers } from './postgres-cdc-support.ts';

const { sides, follow, both } = followers();
const sql = (text: string) => sides.source.sql.unsafe(text);
const there = async (table: string, columns: string) =>
  (await sides.destination.sql.unsafe(`select ${columns} from ${table} order by 1`)).map((row) => Object.values(row));
const changed = { code: 'table_changed', type: 'transient_error', retryable: true };
const confirmed = async ({ reader_id }: Follower) => {
  const [slot] = await sql(
    `select confirmed_flush_lsn::text as at from pg_replication_slots where slot_name = '${slotName(reader_id)}'`,
  );
  return slot?.at;
};

/** A table of two rows, followed and loaded once. */
async function loaded(name: string, columns = 'id int primary key, name text') {
  await sql(`create table ${name} (${columns}); insert into ${name} (id, name) values (1, 'a'), (2, 'b')`);
  const follower = await follow(name);
  await follower.run();
  return follower;
}
const same = async (table: string) => {
  const { source, destination } = await both(table);
  expect(destination).toEqual(source);
};

describe('a table that changes during a read of the log', () => {
  test.each([
    ['added', 'add column extra int', 'extra = 8'],
    ['renamed', 'rename column name to title', "title = 'x'"],
    ['of another type', 'alter column name type varchar(9)', "name = 'x'"],
    ['gone', 'drop column name', 'id = 7'],
  ])('a column %s: no new values are written before the change is discovered', async (what, ddl, set) => {
    const table = `during_${what.replaceAll(' ', '_')}`;
    const follower = await loaded(table);
    await sql(`update ${table} set name = 'first' where id = 1`);
    const { state } = follower;
    const before = await confirmed(follower);
    follower.meanwhile = {
      before: /pg_logical_emit_message/,
      sql: `alter table ${table} ${ddl}; update ${table} set ${set} where id = 2`,
    };
    await expect(follower.run()).rejects.toMatchObject(changed);
    expect([follower.state, await confirmed(follower), follower.meanwhile]).toEqual([state, before, null]);
    expect(await there(table, 'name')).toEqual([['a'], ['b']]);
    if (what === 'renamed') await sides.destination.sql.unsafe(`alter table ${table} rename column name to title`);
    if (what === 'gone') await sides.destination.sql.unsafe(`alter table ${table} drop column name`);
    await follower.run();
    await same(table);
  });
});

describe('a log that is older than the table', () => {
  test('values of renamed columns and of new columns with a default are read from the table', async () => {
    const follower = await loaded('aged', 'id int, part text default $$p$$, name text, primary key (id, part)');
    await sql(`update aged set name = 'new' where id = 1; insert into aged values (3, 'it''s', 'c'), (4, 'q', 'gone');
      alter table aged rename column name to title;
      alter table aged add column since date not null default '2026-01-31';
      alter table aged add column ok boolean; update aged set ok = true, part = 'r' where id = 2; delete from aged where id = 4`);
    await follower.run();
    expect(await there('aged', 'id, part, title, since::text, ok')).toEqual([
      [1, 'p', 'new', '2026-01-31', null],
      [2, 'r', 'b', '2026-01-31', true],
      [3, "it's", 'c', '2026-01-31', null],
    ]);
  });

  test('columns added and dropped in between leave no trace', async () => {
    const follower = await loaded('passing');
    await sql(`alter table passing add column x int; update passing set x = 1, name = 'one' where id = 1;
      alter table passing rename column x to y; insert into passing values (3, 'c', 5);
      alter table passing drop column y; update passing set name = 'two' where id = 2; delete from passing where id = 3;
      alter table passing alter column name type varchar(20); insert into passing values (4, 'd')`);
    await follower.run();
    await same('passing');
    expect(follower.warnings).toEqual([]);
  });

  test('unchanged TOAST values are kept next to a column that is read from the table', async () => {
    const follower = await loaded('toasted', 'id int primary key, name text, big text');
    await sql(`alter table toasted alter column big set storage external;
      update toasted set big = repeat('x', 100000) where id = 1`);
    await follower.run();
    await sql(`update toasted set name = 'n' where id = 1; alter table toasted add column extra int default 4`);
    await follower.run();
    expect(await there('toasted', 'id, name, length(big), extra')).toEqual([
      [1, 'n', 100_000, 4],
      [2, 'b', null, null],
    ]);
  });

  test('changes that lack the current key are an error that a reset resolves', async () => {
    const follower = await loaded('rekeyed', 'id int primary key, name text not null unique');
    await sql(`delete from rekeyed where id = 1;
      alter table rekeyed drop constraint rekeyed_pkey; alter table rekeyed add primary key (name)`);
    const before = await confirmed(follower);
    await expect(follower.run({ primary_key: [['name']] })).rejects.toMatchObject({
      code: 'replica_identity_insufficient',
      message: expect.stringMatching(/name .*Reset the stream's cursor/),
    });
    expect(await confirmed(follower)).toBe(before);
    expect(await there('rekeyed', 'id')).toEqual([[1], [2]]);
    follower.state = null;
    await sides.destination.sql`drop table rekeyed`;
    await follower.run();
    expect(await there('rekeyed', 'id')).toEqual([[2]]);
  });

  test('a replica identity that lacked the key for some time', async () => {
    const follower = await loaded('wavering', 'id int primary key, name text not null unique');
    await sql(
      `alter table wavering replica identity using index wavering_name_key; insert into wavering values (3, 'c')`,
    );
    await sql('alter table wavering replica identity default');
    await follower.run();
    await same('wavering');
    await sql('alter table wavering replica identity using index wavering_name_key; delete from wavering where id = 3');
    await sql('alter table wavering replica identity default');
    await expect(follower.run()).rejects.toMatchObject({ code: 'replica_identity_insufficient' });
    await sql('alter table wavering replica identity full');
    follower.state = null;
    await follower.run();
    await sql(`update wavering set id = 9 where id = 1; delete from wavering where id = 2`);
    await follower.run();
    await same('wavering');
  });
});

describe('a table that changes while its snapshot is created', () => {
  test.each([
    ['a column, before the slot is there', /CREATE_REPLICATION_SLOT/, 'add column extra int'],
    ['the whole table written anew, after it', /set transaction snapshot/, 'alter column id type bigint'],
    ['a column, after it', /^lock table/, 'add column extra int'],
  ])('%s: the snapshot is created again', async (what, before, ddl) => {
    const table = `shot_${what.length}`;
    await sql(`create table ${table} (id int primary key, name text); insert into ${table} values (1, 'a'), (2, 'b')`);
    const follower = await follow(table);
    follower.meanwhile = { before, sql: `alter table ${table} ${ddl}; update ${table} set name = 'c' where id = 2` };
    await expect(follower.run()).rejects.toMatchObject(changed);
    await follower.run();
    await follower.run();
    await same(table);
  });
});
