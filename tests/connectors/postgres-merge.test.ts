import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
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
  const sent = (text: string) => entries.filter(({ body }) => body?.includes(text)).length;
  return { writer, sent, merges: () => entries.filter(({ body }) => body?.startsWith('merge into')).length };
}
/** Another session of the destination, in a transaction. */
async function holding(statement: string) {
  const session = await sides.destination.sql.reserve();
  await session.unsafe(`begin; ${statement}`);
  const [{ pid }] = (await session`select pg_backend_pid() as pid`) as unknown as [{ pid: number }];
  return {
    run: (text: string) => session.unsafe(text),
    /** Ends the statement that runs, if any. */
    cancel: () => sql(`select pg_cancel_backend(${pid})`),
    release: async (how: 'commit' | 'rollback') => (await session.unsafe(how), session.release()),
  };
}
const waitsForLock = async () =>
  (await sql(`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)).length >
  0;

/** The second try. */
const upserts = async () =>
  (
    await sql(
      `select 1 from pg_stat_activity where datname = current_database() and query like 'with merged as (insert%'`,
    )
  ).length > 0;

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

test('one MERGE that is the victim of a deadlock is followed by an upsert', async () => {
  await existing();
  // The merge is the first to look for a deadlock.
  const { release, run, cancel } = await holding(`set local deadlock_timeout = '60s';
    update ${tableName()} set name = name where id = 2`);
  const { writer, merges } = await openMerge();
  await writer.write(batchOf([row(1, 'ours'), row(2, 'ours')]));
  const finished = writer.finish(null);
  await until(waitsForLock);
  const theirs = run(`update ${tableName()} set name = name where id = 1`).catch(() => {});
  await until(upserts);
  // Row 1 may go to the upsert, which would then be the next victim.
  await cancel();
  await theirs;
  await release('rollback');
  expect(await finished).toMatchObject({ rows_updated: 2 });
  expect(merges()).toBe(1);
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
    // The second one waits for the first one's row, and is repeated if that takes long.
    expect(merges()).toBeOneOf([3, 4]);
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

  describe('and merged side by side with them', () => {
    // Rows are merged in the order of their keys.
    const plans = async (how: string) => {
      await sql(`alter database "${sides.destination.server.database}" ${how}`);
    };
    beforeAll(() => plans('set enable_hashjoin = off'));
    afterAll(() => plans('reset enable_hashjoin'));

    /** They are merged, and wait for the commit before theirs. */
    const MERGED = 'pg_blocking_pids';
    const UNDONE = 'rollback to savepoint before_ahead';
    /** Merges `second` while `first` waits for a lock on row `at`, which is released once `sent` was sent. */
    async function sideBySide(parts: {
      first: [number, string][];
      second: [number, string][];
      at: number;
      sent: string;
    }) {
      const { writer, merges, sent } = await openMerge({ columns });
      const { release } = await holding(`update ${tableName()} set name = name where id = ${parts.at}`);
      await writer.pipe!(lines(...parts.first));
      const first = writer.checkpoint({ cursor: '1' });
      await until(waitsForLock);
      await writer.pipe!(lines(...parts.second));
      await until(() => sent(parts.sent) > 0);
      await release('rollback');
      await first;
      expect(await stored()).toMatchObject({ cursor: '1', finished: false });
      const counts = await writer.finish({ cursor: '2' });
      expect(await stored()).toMatchObject({ cursor: '2', finished: true });
      expect(counts).toMatchObject({ rows_loaded: parts.first.length + parts.second.length });
      return { updated: counts.rows_updated, merges: merges(), content: await content() };
    }

    test('are committed after them', async () => {
      await existing();
      const found = await sideBySide({
        first: [[1, 'a']],
        second: [
          [2, 'b'],
          [4, 'b'],
        ],
        at: 1,
        sent: MERGED,
      });
      expect(found).toEqual({
        updated: 2,
        merges: 2,
        content: [
          [1, 'a'],
          [2, 'b'],
          [3, 'old'],
          [4, 'b'],
        ],
      });
    });

    test('let them pass where they have changed the same row first', async () => {
      await existing();
      const found = await sideBySide({
        first: [
          [1, 'a'],
          [3, 'a'],
        ],
        second: [
          [2, 'b'],
          [3, 'b'],
        ],
        at: 1,
        sent: MERGED,
      });
      expect(found).toEqual({
        updated: 4,
        merges: 3,
        content: [
          [1, 'a'],
          [2, 'b'],
          [3, 'b'],
        ],
      });
    });

    test.each(['inserted', 'updated'])('wait for a row that these have %s', async (how) => {
      await existing();
      const key = how === 'inserted' ? 0 : 1;
      const found = await sideBySide({
        first: [
          [key, 'a'],
          [2, 'a'],
        ],
        second: [
          [key, 'b'],
          [3, 'b'],
        ],
        at: 2,
        sent: UNDONE,
      });
      const isNew = how === 'inserted';
      const rest = [
        [2, 'a'],
        [3, 'b'],
      ];
      expect(found).toEqual({
        updated: isNew ? 3 : 4,
        merges: 3,
        content: isNew ? [[0, 'b'], [1, 'old'], ...rest] : [[1, 'b'], ...rest],
      });
    });

    test('wait for a row that is as they have it until it is changed', async () => {
      await existing();
      const found = await sideBySide({
        first: [
          [1, 'a'],
          [2, 'a'],
        ],
        second: [[1, 'old']],
        at: 2,
        sent: UNDONE,
      });
      expect(found).toEqual({
        updated: 3,
        merges: 3,
        content: [
          [1, 'old'],
          [2, 'a'],
          [3, 'old'],
        ],
      });
    });

    test('do so once: later rows wait for the commit', async () => {
      await existing();
      const { writer, merges, sent } = await openMerge({ columns });
      const { release } = await holding(`update ${tableName()} set name = name where id = 1`);
      await writer.pipe!(lines([1, 'a'], [2, 'a']));
      const first = writer.checkpoint({ cursor: '1' });
      await until(waitsForLock);
      await writer.pipe!(lines([2, 'b']));
      await until(() => sent(MERGED) > 0);
      await release('rollback');
      await first;
      const again = await holding(`update ${tableName()} set name = name where id = 1`);
      await writer.checkpoint({ cursor: '2' });
      await writer.pipe!(lines([1, 'c']));
      const third = writer.checkpoint({ cursor: '3' });
      await until(waitsForLock);
      const before = merges();
      await writer.pipe!(lines([3, 'd']));
      await again.release('rollback');
      await third;
      expect(merges()).toBe(before);
      await writer.finish({ cursor: '4' });
      expect(merges()).toBe(before + 1);
      expect(await content()).toEqual([
        [1, 'c'],
        [2, 'b'],
        [3, 'd'],
      ]);
    });

    test('are not there after an abort', async () => {
      await existing();
      const { writer, sent } = await openMerge({ columns });
      const { release } = await holding(`update ${tableName()} set name = name where id = 1`);
      await writer.pipe!(lines([1, 'a']));
      const first = errorOf(writer.checkpoint({ cursor: '1' }));
      await until(waitsForLock);
      await writer.pipe!(lines([2, 'b'], [4, 'b']));
      await until(() => sent(MERGED) > 0);
      await writer.abort();
      expect(await first).not.toBe(null);
      await release('rollback');
      expect(await stored()).toMatchObject({ cursor: null });
      expect((await content()).length).toBe(3);
      await until(async () => (await backends(sides.destination)) === 0);
    });

    test('wait where triggers may see them', async () => {
      await existing(`create function ${tableName()}_seen() returns trigger language plpgsql as 'begin return new; end';
        create trigger seen before insert on ${tableName()} for each row execute function ${tableName()}_seen()`);
      const found = await sideBySide({ first: [[1, 'a']], second: [[4, 'b']], at: 1, sent: UNDONE });
      expect(found).toMatchObject({ updated: 1, merges: 0 });
    });
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

describe('a key that is generated always as identity takes the keys of the source', () => {
  const IDENTITY = 'id bigint generated always as identity primary key, name text, at timestamptz';
  const ways: [string, (table: string) => string, Partial<WriteTarget>][] = [
    ['one MERGE', () => '', { mode: 'append_dedup' }],
    ['an upsert', (table) => `create table ${table}_child () inherits (${table})`, { mode: 'append_dedup' }],
    ['soft deletes', () => '', { mode: 'soft_delete' }],
    ['a table with a view', (table) => `create view ${table}_view as select * from ${table}`, { mode: 'overwrite' }],
    ['appends', () => '', { mode: 'append' }],
    [
      'an exchange',
      (table) => `insert into ${table} (name) values ('a'), ('b'); create unique index on ${table} (name)`,
      { mode: 'append_dedup' },
    ],
  ];
  test.each(ways)('by %s', async (_, more, how) => {
    const table = tableName();
    await sql(`create table ${table} (${IDENTITY}); ${more(table)}`);
    await load(how, batchOf([row(1, 'b'), row(2, 'a'), row(7, 'c')]));
    expect(await content()).toEqual([
      [1, 'b'],
      [2, 'a'],
      [7, 'c'],
    ]);
  });

  test('and one beside the key is named with what to do', async () => {
    await sql(
      `create table ${tableName()} (id bigint primary key, name text generated always as (id::text) stored, at timestamptz)`,
    );
    const error = await errorOf(load({ mode: 'append_dedup' }, batchOf([row(1, 'a')])));
    expect(error).toMatchObject({ code: 'generated_column', message: expect.stringContaining('Deselect the field') });
  });
});
