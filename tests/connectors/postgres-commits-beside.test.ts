import { afterEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { DELETE, type RowChange, UPSERT } from '../../server/connectors/contract/changes.ts';
import type { ReplicationWriter, WriteTarget } from '../../server/connectors/contract/connector.ts';
import { DataError } from '../../server/connectors/contract/errors.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { isThorough } from '../support/thorough.ts';
import { until } from '../support/until.ts';
import { backends, batchOf, column, destinationConfig } from './postgres-support.ts';
import { targetTables } from './postgres-target-tables.ts';

const { sides, target, tableName, errorOf } = targetTables();
const sql = (text: string) => sides.destination.sql.unsafe(text);
const COLUMNS = [column('id', 'integer'), column('name', 'string')];
/** Larger than what is held in memory, so the rows of its commit are staged. */
const LARGE = 'x'.repeat(1_100_000);
const at = (cursor: number) => ({ cursor: String(cursor) });

const writers: ReplicationWriter[] = [];
afterEach(async () => {
  for (const writer of writers.splice(0)) await writer.abort();
});

/** Two tables with rows 1 to 3, and what opens a writer of both. */
async function bothTables(suffix = '') {
  const names = ['a', 'b'].map((one) => `${tableName()}_${one}${suffix}`);
  for (const name of names)
    await sql(`create table ${name} (id int primary key, name text);
      insert into ${name} select n, 'old' from generate_series(1, 3) n`);
  const open = async (
    own: Partial<WriteTarget> = {},
    config: Parameters<typeof destinationConfig>[1] = {},
    logged: string[] = [],
  ) => {
    const { ctx } = destinationConfig(sides.destination, config);
    ctx.log.warn = (message) => void logged.push(message);
    const targets = names.map((table) => ({
      target: target({ mode: 'append_dedup', table, stream_id: table, columns: COLUMNS, ...own }),
      warn() {},
    }));
    const writer = await postgresDestination.openReplication!(ctx, targets);
    writers.push(writer);
    return writer;
  };
  /** Without the rows that are only large. */
  const shown = async () => {
    const tables = names.map(
      (name) => `(select json_object_agg(id, name order by id) from ${name} where id > 0) as ${name}`,
    );
    const [found] = await sql(`select ${tables.join(', ')}`);
    return Object.values(found!).map((one: object | null) => one ?? {});
  };
  const cursor = async () => {
    const rows = await sql(`select distinct state ->> 'cursor' as cursor from _pipeline_state
      where stream_id in (${names.map((name) => `'${name}'`).join(', ')}) and state is not null`);
    expect(rows.length).toBeLessThan(2);
    return Number(rows[0]?.cursor ?? 0);
  };
  return { names, open, shown, cursor };
}

async function holding(statement: string) {
  const session = await sides.destination.sql.reserve();
  await session.unsafe(`begin; ${statement}`);
  return async () => {
    await session.unsafe('rollback');
    session.release();
  };
}
/** A session of the writer does this, or has done it last, and waits for what comes next. */
const idleAfter = async (statement: string) =>
  (
    await sql(`select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and wait_event = 'ClientRead' and query ilike '${statement}%'`)
  ).length > 0;
/** What is merged ahead looks from time to time whether another session waits for it. */
const isMergedAhead = () => idleAfter('select exists (select from pg_catalog.pg_locks');
const waitsForLock = async () =>
  (await sql(`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)).length >
  0;

const large = (cursor: number, id = 0) => batchOf([[String(id), `${cursor} ${LARGE}`]]);

describe('rows of a log that are written while a commit is under way', () => {
  test('are staged by another session, and merged after it', async () => {
    const { names, open, shown, cursor } = await bothTables();
    const writer = await open();
    expect(writer.writes_while_committing).toBe(true);
    const release = await holding(`update ${names[0]} set name = name where id = 1`);
    await writer.write(0, large(1));
    await writer.write(
      0,
      batchOf([
        ['1', 'new'],
        ['2', 'new'],
      ]),
    );
    const first = writer.commit([at(1), at(1)]);
    await until(waitsForLock);
    // Back to what the table shows until the first commit has ended.
    await writer.write(0, large(2));
    await writer.write(0, batchOf([['1', 'old']]));
    await writer.write(
      1,
      batchOf([
        ['1', 'b'],
        ['4', 'b'],
      ]),
    );
    expect(await backends(sides.destination)).toBe(2);
    expect([await shown(), await cursor()]).toEqual([[OLD, OLD], 0]);
    await release();
    expect((await first).get(0)).toMatchObject({ rows_loaded: 3, rows_updated: 2 });
    expect([await shown(), await cursor()]).toEqual([[{ 1: 'new', 2: 'new', 3: 'old' }, OLD], 1]);
    const second = await writer.commit([at(2), at(2)]);
    expect(second.get(0)).toMatchObject({ rows_loaded: 5, rows_updated: 4 });
    expect(second.get(1)).toMatchObject({ rows_loaded: 2, rows_updated: 1 });
    expect(await shown()).toEqual([
      { 1: 'old', 2: 'new', 3: 'old' },
      { 1: 'b', 2: 'old', 3: 'old', 4: 'b' },
    ]);
    await writer.write(0, { ...batchOf([['3', null]]), changes: [DELETE] });
    const [counts] = await writer.finish([at(3), at(3)]);
    expect(counts).toMatchObject({ rows_loaded: 5, rows_updated: 4, rows_deleted: 1 });
    expect(await cursor()).toBe(3);
    await until(async () => (await backends(sides.destination)) === 0);
  });

  test('are gone where that commit fails, or the writer is aborted', async () => {
    const { names, open, shown, cursor } = await bothTables();
    await sql(`alter table ${names[0]} add constraint no_b check (name <> 'b')`);
    const failed = await open();
    await failed.write(0, large(1));
    await failed.write(0, batchOf([['1', 'b']]));
    const first = errorOf(failed.commit([at(1), at(1)]));
    await failed.write(0, large(2));
    failed.mergeAhead!();
    expect(await first).toMatchObject({ failures: new Map([[0, expect.any(DataError)]]) });
    await failed.abort();
    expect([await shown(), await cursor()]).toEqual([[OLD, OLD], 0]);

    const aborted = await open({ fence: 2 });
    const release = await holding(`update ${names[0]} set name = name where id = 1`);
    await aborted.write(0, large(1));
    await aborted.write(0, batchOf([['1', 'c']]));
    const second = errorOf(aborted.commit([at(1), at(1)]));
    await until(waitsForLock);
    await aborted.write(0, large(2, -2));
    aborted.mergeAhead!();
    await until(isMergedAhead);
    await aborted.abort();
    expect(await second).not.toBe(null);
    await release();
    await until(async () => (await backends(sides.destination)) === 0);
    expect([await shown(), await cursor()]).toEqual([[OLD, OLD], 0]);
  });

  describe('and are to be merged before it has ended', () => {
    /** Merges `second` while `first` waits for a lock on row 1, which is released once `reached`. */
    async function sideBySide(parts: {
      first: [string, string][];
      second: [string, string][];
      setup?: (table: string) => string;
      reached: () => Promise<boolean>;
    }) {
      const { names, open, shown, cursor } = await bothTables();
      if (parts.setup) await sql(parts.setup(names[0]!));
      const writer = await open();
      const release = await holding(`update ${names[0]} set name = name where id = 1`);
      await writer.write(0, large(1, -1));
      await writer.write(0, batchOf(parts.first));
      const first = writer.commit([at(1), at(1)]);
      await until(waitsForLock);
      await writer.write(1, large(2, -2));
      await writer.write(0, large(2, -2));
      await writer.write(0, batchOf(parts.second));
      writer.mergeAhead!();
      await until(parts.reached);
      const [during] = await shown();
      await release();
      await first;
      const [between] = await shown();
      expect(await cursor()).toBe(1);
      await writer.commit([at(2), at(2)]);
      expect(await cursor()).toBe(2);
      const [after] = await shown();
      return { during, between, after };
    }

    test('are merged, and become visible after it', async () => {
      const found = await sideBySide({ first: [['1', 'a']], second: [['2', 'b']], reached: isMergedAhead });
      const between = { ...OLD, 1: 'a' };
      expect(found).toEqual({ during: OLD, between, after: { ...between, 2: 'b' } });
    });

    test('wait where both have the same key', async () => {
      const found = await sideBySide({
        first: [
          ['1', 'a'],
          ['2', 'a'],
        ],
        // As the table has it until the first commit has ended.
        second: [['2', 'old']],
        reached: () => idleAfter('copy'),
      });
      const between = { ...OLD, 1: 'a', 2: 'a' };
      expect(found).toEqual({ during: OLD, between, after: { ...between, 2: 'old' } });
    });

    test('wait where keys that differ may be equal', async () => {
      const found = await sideBySide({
        first: [
          ['1', 'a'],
          ['2', 'a'],
        ],
        second: [['2.0', 'old']],
        setup: (table) => `alter table ${table} alter id type numeric`,
        reached: () => idleAfter('copy'),
      });
      expect(found.after).toMatchObject({ 1: 'a', 3: 'old' });
      expect(Object.values(found.after!)).toEqual(['a', 'old', 'old']);
    });

    test('are undone where they take a unique value that it gives away', async () => {
      const found = await sideBySide({
        first: [
          ['1', 'a'],
          ['0', 'b'],
        ],
        second: [['3', 'third']],
        setup: (table) => `delete from ${table} where id > 0; insert into ${table} values (0, 'third'), (1, 'first');
          create unique index on ${table} (left(name, 100)) where name not like 'x%'`,
        reached: () => idleAfter('rollback to savepoint before_ahead'),
      });
      expect(found).toEqual({ during: { 1: 'first' }, between: { 1: 'a' }, after: { 1: 'a', 3: 'third' } });
    });
  });

  test('need no other session where commits are small', async () => {
    const { open, shown } = await bothTables();
    const writer = await open();
    for (const cursor of [1, 2, 3]) {
      await writer.write(0, batchOf([['1', `${cursor}`]]));
      const committed = writer.commit([at(cursor), at(cursor)]);
      await writer.write(0, batchOf([['1', `${cursor} again`]]));
      await committed;
      await writer.commit([at(cursor), at(cursor)]);
    }
    expect(await backends(sides.destination)).toBe(1);
    expect((await shown())[0]).toMatchObject({ 1: '3 again' });
    await writer.abort();
  });

  test('wait for it where the server accepts no other session, or settings allow none', async () => {
    const { open, shown } = await bothTables();
    const alone = await open({}, { parallel_writes: 1 });
    expect(alone.writes_while_committing).toBe(false);
    await alone.abort();
    const user = `alone_${tableName()}`;
    await sql(
      `create role "${user}" login password 'alone' connection limit 1 in role "${sides.destination.server.username}"`,
    );
    try {
      const logged: string[] = [];
      const writer = await open({ fence: 2 }, { username: user, password: 'alone' }, logged);
      for (const cursor of [1, 2, 3]) {
        await writer.write(0, large(cursor));
        const committed = writer.commit([at(cursor), at(cursor)]);
        await writer.write(0, batchOf([['1', `${cursor}`]]));
        await committed;
        await writer.commit([at(cursor), at(cursor)]);
      }
      const [counts] = await writer.finish([at(4), at(4)]);
      expect(counts).toMatchObject({ rows_loaded: 6, rows_updated: 5 });
      expect(logged).toEqual(['merging over one connection']);
      expect((await shown())[0]).toMatchObject({ 1: '3' });
    } finally {
      await sql(`reassign owned by "${user}" to current_user; drop role "${user}"`);
    }
  });

  test('are not counted before they are committed where values are changed or rejected', async () => {
    const { open } = await bothTables();
    for (const [fence, more] of [
      [1, { inexact_values: 'allow' }],
      [2, { rejects: { limit: 10 } }],
    ] as const) {
      const writer = await open({ fence, ...(more as Partial<WriteTarget>) });
      expect(writer.writes_while_committing).toBe(false);
      await writer.abort();
    }
  });

  test('show what the log had at each commit, whatever the changes and the crashes', async () => {
    const change = fc.record({
      stream: fc.integer({ min: 0, max: 1 }),
      id: fc.integer({ min: 1, max: 9 }),
      name: fc.constantFrom('old', 'one', 'two', null),
      operation: fc.constantFrom<RowChange>(UPSERT, UPSERT, DELETE),
    });
    const step = fc.record({
      changes: fc.array(change, { minLength: 1, maxLength: 6 }),
      /** A table with rows that are not held, before those of the other or after them. */
      large: fc.constantFrom(null, 0, 1),
      crash: fc.constantFrom('none', 'none', 'none', 'none', 'written', 'ahead', 'committing'),
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
        run += 1;
        const { open, shown, cursor } = await bothTables(`_${run}`);
        /** The tables after each commit. */
        const states: Record<string, string | null>[][] = [[OLD, OLD]];
        for (const { changes } of steps) {
          const tables = states.at(-1)!.map((one) => ({ ...one }));
          for (const { stream, id, name, operation } of changes) {
            if (operation === DELETE) delete tables[stream]![id];
            else tables[stream]![id] = name;
          }
          states.push(tables);
        }
        let fence = 1;
        let writer = await open();
        let committing: Promise<unknown> | null = null;
        const isAt = async (number: number) =>
          expect([number, await shown()]).toEqual([await cursor(), states[number]!]);
        const commit = async (number: number) => {
          writer.mergeAhead!();
          await committing;
          await isAt(number - 1);
          committing = writer.commit([at(number), at(number)], true);
          committing.catch(() => {});
        };
        const crashed = new Set<number>();
        for (let number = 1; number <= steps.length; ) {
          const { changes, large: at_large, crash } = steps[number - 1]!;
          if (at_large === 0) await writer.write(0, large(number, -number));
          for (const { stream, id, name, operation } of changes)
            await writer.write(stream, { ...batchOf([[String(id), name]]), changes: [operation] });
          if (at_large === 1) await writer.write(1, large(number, -number));
          const crashes = crash !== 'none' && !crashed.has(number);
          if (!crashes || crash === 'committing') await commit(number);
          else if (crash === 'ahead') writer.mergeAhead!();
          number += 1;
          if (!crashes) continue;
          crashed.add(number - 1);
          await writer.abort();
          await errorOf(committing ?? Promise.resolve());
          committing = null;
          fence += 1;
          writer = await open({ fence });
          number = (await cursor()) + 1;
          await isAt(number - 1);
        }
        await committing;
        await isAt(steps.length);
        await writer.finish([at(steps.length), at(steps.length)]);
        await isAt(steps.length);
      }),
      { numRuns: isThorough ? 300 : 25 },
    );
  }, 180_000);
});

const OLD = { 1: 'old', 2: 'old', 3: 'old' };
