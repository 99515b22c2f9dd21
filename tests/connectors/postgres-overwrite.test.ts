import { beforeEach, describe, expect, test } from 'bun:test';
import type { WriteTarget } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, DataError } from '../../server/connectors/contract/errors.ts';
import { until } from '../support/until.ts';
import type { PgTarget } from '../../server/connectors/postgres/write/target.ts';
import { isCommitted } from '../../server/connectors/postgres/write/seen-commit.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { backends, batchOf, column, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';
import { COLUMNS } from './writing.ts';

const { sides, open, row, load, content, errorOf, tableName, target } = targetTables();
let table = '';
beforeEach(() => {
  table = tableName();
});

describe('overwrite', () => {
  const mode = 'overwrite' as const;

  test('readers see the old rows until the new ones replace them all', async () => {
    await load({ mode }, batchOf([row(1, 'old'), row(2, 'old')]));
    const writer = await open({ mode, fence: 2, stream_run_id: 'second' });
    await writer.write(batchOf([row(3, 'new')]));
    expect(await writer.checkpoint({ cursor: null })).toMatchObject({ rows_loaded: 0 });
    expect(await content()).toEqual([
      [1, 'old'],
      [2, 'old'],
    ]);
    await writer.write(batchOf([row(4, 'new')]));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: 2 });
    expect(await content()).toEqual([
      [3, 'new'],
      [4, 'new'],
    ]);
    const keys = await sides.destination
      .sql`select conname from pg_constraint where conrelid = ${table}::regclass and contype = 'p'`;
    expect(keys.map(({ conname }) => conname)).toEqual([`${table}_pkey`]);
    const left = await sides.destination.sql`select relname from pg_class where relname like ${`${table}\\_\\_new%`}`;
    expect(left.length).toBe(0);
  });

  test('the server gets few messages', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const { ctx, entries } = destinationConfig(sides.destination);
    const writer = await postgresDestination.open(ctx, target({ mode, fence: 2, stream_run_id: 'second' }));
    await writer.write(batchOf([row(2, 'new')]));
    await writer.finish(null);
    expect(entries.filter(({ method }) => method === 'QUERY').length).toBeLessThanOrEqual(15);
    expect(await content()).toEqual([[2, 'new']]);
  });

  test('a commit is seen from the moment at which it is visible, and no other one', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const { ctx } = destinationConfig(sides.destination);
    const second = { ...target({ mode, fence: 2, stream_run_id: 'second' }), schema: 'public' } as PgTarget;
    expect(await isCommitted(ctx, second)).toBe(false);
    const session = await sides.destination.sql.reserve();
    const update = () => session`update _pipeline_state set fence = 2, stream_run_id = 'second', finished = true
        where stream_id = ${second.stream_id}`;
    const waiting = async () =>
      (await sides.destination.sql`select 1 from pg_stat_activity where wait_event_type = 'Lock'`).length === 1;
    for (const [end, expected] of [
      ['rollback', false],
      ['commit', true],
    ] as const) {
      await session`begin`;
      await update();
      const seen = isCommitted(ctx, second);
      await until(waiting);
      await session.unsafe(end);
      expect(await seen).toBe(expected);
    }
    session.release();
  });

  test('the run ends with the commit, before the server has deleted a large table', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const { sql } = sides.destination;
    await sql.unsafe(`alter table ${table} alter column name set storage external`);
    await sql.unsafe(`insert into ${table} (id, name) select n, repeat('x', 1000000) from generate_series(2, 80) n`);
    const { ctx, entries } = destinationConfig(sides.destination);
    const writer = await postgresDestination.open(ctx, target({ mode, fence: 2, stream_run_id: 'second' }));
    await writer.write(batchOf([row(3, 'new')]));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: 1 });
    expect(await content()).toEqual([[3, 'new']]);
    expect(entries.map(({ body }) => body)).toContain('commit');
    await until(() => entries.some(({ body }) => body?.includes('for share')));
    await until(async () => (await backends(sides.destination)) === 0);
  });

  test('an empty stream empties the table', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await load({ mode, fence: 2 });
    expect(await content()).toEqual([]);
  });

  test('grants and the owner are kept', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const { sql } = sides.destination;
    await sql.unsafe(`create role reader_${table}; create role owner_${table};
      grant select on ${table} to reader_${table} with grant option; grant insert on ${table} to public;
      alter table ${table} owner to owner_${table}`);
    const acl = () =>
      sql`select relacl::text, pg_get_userbyid(relowner) as owner, relfilenode from pg_class where oid = ${table}::regclass`;
    const [before] = await acl();
    await load({ mode, fence: 2 }, batchOf([row(2, 'new')]));
    const [after] = await acl();
    expect(after!.relfilenode).not.toBe(before!.relfilenode);
    expect(after!.owner).toBe(before!.owner);
    const parts = (text: string) => text.slice(1, -1).split(',').sort();
    expect(parts(after!.relacl)).toEqual(parts(before!.relacl));
    await sql.unsafe(`drop table ${table}; drop role reader_${table}; drop role owner_${table}`);
  });

  test('a table that a view keeps is not filled with rounded values', async () => {
    const { sql } = sides.destination;
    const columns = [column('id', 'integer'), column('amount', 'number')];
    await sql.unsafe(`create table ${table} (id bigint, amount numeric(10,2)); insert into ${table} values (1, 1.25);
      create view kept_${table} as select amount from ${table}`);
    const fill = (amount: string, more: Partial<WriteTarget>) =>
      load({ mode, columns, ...more }, batchOf([['2', amount]]));
    expect(await errorOf(fill('1.255', { fence: 2 }))).toMatchObject({
      code: 'value_does_not_fit',
      message: expect.stringContaining(`amount has "1.255", which numeric(10,2) cannot hold exactly`),
    });
    expect(await sql.unsafe(`select amount from kept_${table}`)).toEqual([{ amount: '1.25' }] as never);
    await fill('1.2600', { fence: 3, stream_run_id: 'third' });
    await fill('1.255', { fence: 4, stream_run_id: 'fourth', inexact_values: 'allow' });
    expect(await sql.unsafe(`select amount from kept_${table}`)).toEqual([{ amount: '1.26' }] as never);
  });

  test('views and indexes on the table keep working', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await sides.destination.sql.unsafe(
      `create view view_${table} as select name from ${table}; create index on ${table} (name)`,
    );
    await load({ mode, fence: 2, columns: [...COLUMNS, column('more', 'string')] }, batchOf([[...row(2, 'new'), 'x']]));
    expect([...(await sides.destination.sql.unsafe(`select * from view_${table}`))]).toEqual([
      { name: 'new' },
    ] as never);
    expect((await sides.destination.sql`select 1 from pg_indexes where tablename = ${table}`).length).toBe(2);
  });

  test('a table referenced by foreign keys is rejected and stays unchanged', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    await sides.destination.sql.unsafe(
      `create table child_${table} (id bigint references ${table}); insert into child_${table} values (1)`,
    );
    const error = await errorOf(load({ mode, fence: 2 }, batchOf([row(2, 'new')])));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error!.code).toBe('table_is_referenced');
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('rows with the same key are a data error, and the old rows stay', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const error = await errorOf(load({ mode, fence: 2 }, batchOf([row(2, 'a'), row(2, 'b')])));
    expect(error).toBeInstanceOf(DataError);
    expect(error!.code).toBe('duplicate_key');
    expect(await content()).toEqual([[1, 'old']]);
  });

  test('a row without a key is a data error, or rejected alone', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const rows = batchOf([row(2, 'new'), row(null, 'none')]);
    expect(await errorOf(load({ mode, fence: 2 }, rows))).toMatchObject({ code: 'null_value' });
    expect(await content()).toEqual([[1, 'old']]);
    const counts = await load({ mode, fence: 3, stream_run_id: 'third', rejects: { limit: 1 } }, rows);
    expect(counts).toMatchObject({ rows_loaded: 1, rows_rejected: 1 });
    expect(await content()).toEqual([[2, 'new']]);
  });

  test('a long-running reader only delays the swap', async () => {
    await load({ mode }, batchOf([row(1, 'old')]));
    const writer = await open({ mode, fence: 2 });
    await writer.write(batchOf([row(2, 'new')]));
    let finished: Promise<unknown> = Promise.resolve();
    await sides.destination.sql.begin(async (sql) => {
      await sql.unsafe(`select * from ${table}`);
      finished = writer.finish(null);
      await until(async () => (await sides.destination.sql`select 1 from pg_locks where not granted`).length > 0);
      expect([...(await sql.unsafe(`select name from ${table}`))]).toEqual([{ name: 'old' }] as never);
    });
    await finished;
    expect(await content()).toEqual([[2, 'new']]);
  });
});
