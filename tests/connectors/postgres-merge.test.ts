import { describe, expect, test } from 'bun:test';
import { DELETE, UPSERT } from '../../server/connectors/contract/changes.ts';
import type { ByteStream, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { until } from '../support/until.ts';
import { backends, batchOf, column, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

// What all databases share is in merge.test.ts.
const { sides, target, row, load, content, tableName, errorOf } = targetTables();
const sql = (text: string) => sides.destination.sql.unsafe(text);

test('merges into a partitioned table', async () => {
  const table = tableName();
  await sides.destination.sql.unsafe(`create table ${table} (id bigint primary key, name text, at timestamptz) partition by hash (id);
    create table ${table}_0 partition of ${table} for values with (modulus 1, remainder 0); insert into ${table} values (1, 'old')`);
  await load({ mode: 'append_dedup' }, batchOf([row(1, 'new'), row(2, 'new')]));
  expect(await content()).toEqual([
    [1, 'new'],
    [2, 'new'],
  ]);
});

async function existing(more = ''): Promise<void> {
  const table = tableName();
  await sql(`create table ${table} (id bigint primary key, name text, at timestamptz);
    insert into ${table} values (1, 'old'), (2, 'old'), (3, 'old'); ${more}`);
}
async function openMerge(more: Partial<WriteTarget> = {}) {
  const { ctx, entries } = destinationConfig(sides.destination);
  const writer = await postgresDestination.open(ctx, target({ mode: 'append_dedup', ...more }));
  return { writer, merges: () => entries.filter(({ body }) => body?.startsWith('merge into')).length };
}
/** Another session of the destination, in a transaction. */
async function holding(statement: string) {
  const session = await sides.destination.sql.reserve();
  await session.unsafe(`begin; ${statement}`);
  return { release: async (how: 'commit' | 'rollback') => (await session.unsafe(how), session.release()) };
}
const waitsForLock = async () =>
  (await sql(`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)).length >
  0;

describe('one MERGE', () => {
  test('counts the rows that it updates, commit by commit', async () => {
    await existing();
    const { writer, merges } = await openMerge();
    await writer.write(batchOf([row(1, 'a'), row(2, 'old'), row(4, 'a')]));
    expect(await writer.checkpoint({ cursor: '1' })).toMatchObject({
      rows_loaded: 3,
      rows_updated: 1,
      rows_deleted: 0,
    });
    await writer.write(batchOf([row(1, 'b'), row(2, 'old'), row(5, 'b'), row(5, 'c')]));
    expect(await writer.finish({ cursor: '2' })).toMatchObject({ rows_loaded: 7, rows_updated: 2, rows_deleted: 0 });
    expect(merges()).toBe(2);
    expect(await content()).toEqual([
      [1, 'b'],
      [2, 'old'],
      [3, 'old'],
      [4, 'a'],
      [5, 'c'],
    ]);
  });

  test('deletes, updates and inserts', async () => {
    await existing();
    const { writer, merges } = await openMerge();
    const rows = [row(1, 'gone'), row(2, 'new'), row(4, 'new'), row(5, 'gone'), row(6, 'new')];
    await writer.write({ ...batchOf(rows), changes: [DELETE, UPSERT, UPSERT, DELETE, UPSERT] });
    expect(await writer.finish(null)).toMatchObject({ rows_updated: 1, rows_deleted: 1 });
    expect(merges()).toBe(1);
    expect(await content()).toEqual([
      [2, 'new'],
      [3, 'old'],
      [4, 'new'],
      [6, 'new'],
    ]);
  });

  test('is followed by an upsert where another session has inserted the same key meanwhile', async () => {
    await existing();
    const { release } = await holding(`insert into ${tableName()} values (4, 'theirs')`);
    const { writer, merges } = await openMerge();
    await writer.write(batchOf([row(1, 'ours'), row(4, 'ours')]));
    const finished = writer.finish(null);
    await until(waitsForLock);
    await release('commit');
    expect(await finished).toMatchObject({ rows_updated: 2 });
    expect(merges()).toBe(1);
    expect(await content()).toEqual([
      [1, 'ours'],
      [2, 'old'],
      [3, 'old'],
      [4, 'ours'],
    ]);
  });

  test('is not done where a trigger may count other rows', async () => {
    await existing(`create function seen() returns trigger language plpgsql as 'begin return new; end';
      create trigger seen before insert on ${tableName()} for each row execute function seen()`);
    const { writer, merges } = await openMerge();
    await writer.write(batchOf([row(1, 'new'), row(4, 'new')]));
    expect(await writer.finish(null)).toMatchObject({ rows_updated: 1 });
    expect(merges()).toBe(0);
  });
});

describe('rows that are copied while those before them are merged', () => {
  const columns = [column('id', 'integer'), column('name', 'string')];
  const lines = (...rows: [number, string][]): ByteStream => {
    const bytes = Buffer.from(rows.map(([id, name]) => `${id}\t${name}\n`).join(''));
    return {
      format: 'pgcopy-text',
      chunks: (async function* () {
        yield bytes;
      })(),
      rows: () => rows.length,
      state: () => null,
    };
  };
  const stored = async () =>
    (
      await sql(
        `select state ->> 'cursor' as cursor, state_version, finished from _pipeline_state where stream_id = '${tableName()}'`,
      )
    )[0];

  test('are merged after them, with a state of their own', async () => {
    await existing();
    const { writer, merges } = await openMerge({ columns });
    expect(writer.writes_while_committing).toBe(true);
    const { release } = await holding(`update ${tableName()} set name = name where id = 1`);
    await writer.pipe!(lines([1, 'a'], [4, 'a']));
    const first = writer.checkpoint({ cursor: '1' });
    await until(waitsForLock);
    await writer.pipe!(lines([1, 'b'], [5, 'b']));
    await until(async () => (await backends(sides.destination, 'active')) === 2);
    await release('rollback');
    expect(await first).toMatchObject({ rows_loaded: 2, rows_updated: 1 });
    expect(await stored()).toMatchObject({ cursor: '1', finished: false });
    expect(await writer.checkpoint({ cursor: '2' })).toMatchObject({ rows_loaded: 4, rows_updated: 2 });
    await writer.pipe!(lines([1, 'c']));
    expect(await writer.finish({ cursor: '3' })).toMatchObject({ rows_loaded: 5, rows_updated: 3 });
    expect(await stored()).toMatchObject({ cursor: '3', state_version: '3', finished: true });
    expect(merges()).toBe(3);
    expect(await content()).toEqual([
      [1, 'c'],
      [2, 'old'],
      [3, 'old'],
      [4, 'a'],
      [5, 'b'],
    ]);
  });

  test('are not there after an abort, nor is what was under way', async () => {
    await existing();
    const { writer } = await openMerge({ columns });
    const { release } = await holding(`update ${tableName()} set name = name where id = 1`);
    await writer.pipe!(lines([1, 'a'], [4, 'a']));
    const first = errorOf(writer.checkpoint({ cursor: '1' }));
    await until(waitsForLock);
    await writer.pipe!(lines([5, 'b']));
    await writer.abort();
    expect(await first).not.toBe(null);
    await release('rollback');
    expect(await stored()).toMatchObject({ cursor: null });
    expect((await content()).length).toBe(3);
    await until(async () => (await backends(sides.destination)) === 0);
  });

  test('are merged over one connection where the server accepts no second one', async () => {
    await existing();
    const { username } = sides.destination.server;
    const alone = `alone_${tableName()}`;
    await sql(`create role "${alone}" login password 'alone' connection limit 1 in role "${username}"`);
    try {
      const { ctx } = destinationConfig(sides.destination, { username: alone, password: 'alone' });
      const logged: string[] = [];
      ctx.log.warn = (message) => void logged.push(message);
      const writer = await postgresDestination.open(ctx, target({ mode: 'append_dedup', columns }));
      expect(writer.writes_while_committing).toBe(true);
      for (const cursor of ['1', '2', '3']) {
        await writer.pipe!(lines([1, cursor]));
        const committed = writer.checkpoint({ cursor });
        await writer.pipe!(lines([1, `${cursor} again`]));
        await committed;
        await writer.checkpoint({ cursor });
      }
      expect(await writer.finish({ cursor: '4' })).toMatchObject({ rows_loaded: 6, rows_updated: 6 });
      expect(logged).toEqual(['merging over one connection']);
      expect((await content())[0]).toEqual([1, '3 again']);
    } finally {
      await sql(`reassign owned by "${alone}" to current_user; drop role "${alone}"`);
    }
  });

  test('wait where one connection may write', async () => {
    await existing();
    const { ctx } = destinationConfig(sides.destination, { parallel_writes: 1 });
    const writer = await postgresDestination.open(ctx, target({ mode: 'append_dedup', columns }));
    expect(writer.writes_while_committing).toBe(false);
    await writer.abort();
  });
});
