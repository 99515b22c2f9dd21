import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { logServer } from '../support/postgres.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { pageRanges } from '../../server/connectors/postgres/read/ranges.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { until } from '../support/until.ts';
import {
  backends,
  destinationConfig,
  moveStream,
  requestOf,
  sourceConfig,
  streamNamed,
  targetOf,
  twoDatabases,
} from './postgres-support.ts';

/** Of `big`. */
const ROWS = 10_249;

const sides = twoDatabases(logServer);
const run = (sql: string) => sides.source.sql.unsafe(sql);
let proxy: Awaited<ReturnType<typeof startTcpProxy>>;
afterAll(() => proxy?.stop());
/** A server slow enough for parallel reads to help: 4 MB/s per connection. */
const slowSource = (parallel_reads: number) =>
  sourceConfig(sides.source, { parallel_reads, port: proxy.port, host: '127.0.0.1', ssl_mode: 'disable' });
const LANES = ['pgcopy-binary', 'pgcopy-text', 'rows'] as const;
const copiesOf = ({ entries }: ReturnType<typeof sourceConfig>) => entries.filter(({ method }) => method === 'COPY');
const linesOf = ({ entries }: ReturnType<typeof sourceConfig>) => entries.filter(({ method }) => method === 'CONNECT');

/**
 * Tables of some 50 MB, which three connections share, of which a quarter is data: pages without rows in the middle and at
 * the end, rows of all sizes, one larger than any buffer.
 */
beforeAll(async () => {
  proxy = await startTcpProxy(sides.source.server, { bytes_per_second: 4_000_000 });
  await run(`
    create table big (id int primary key, note text, amount numeric, body bytea) with (fillfactor = 25);
    alter table big alter column note set storage external;
    insert into big select g, case when g % 7 > 0 then repeat(md5(g::text), 1 + g % 79) end, g * 1.25, decode(md5(g::text), 'hex')
      from generate_series(1, 12500) g;
    delete from big where id between 5000 and 6750 or id > 12000;
    update big set note = repeat('ä€😀\\\t', 400000) where id = 7500;
    create table parts (id int, day date, note text) partition by range (day);
    create table parts_2024 partition of parts for values from ('2024-01-01') to ('2025-01-01') with (fillfactor = 25);
    create table parts_2025 partition of parts for values from ('2025-01-01') to ('2027-01-01') with (fillfactor = 25);
    insert into parts select g, date '2024-01-01' + g % 1000, repeat(md5(g::text), 30) from generate_series(1, 13750) g;
    create view seen as select * from big;
    create table small as select g as id from generate_series(1, 1000) g`);
});

/** Continues reading until this many connections take part. */
const untilReaders = async (chunks: AsyncIterator<Uint8Array>, readers: number) => {
  while ((await backends(sides.source)) < readers) expect((await chunks.next()).done).toBeFalsy();
};

const CHECKSUM = (table: string) =>
  `select count(*)::int as n, md5(string_agg(md5(t::text), '' order by id, t::text)) as sum from ${table} t`;

/** The checksum of a table that does not change takes longer than its read. */
const once = <T>(work: () => Promise<T>) => {
  let result: Promise<T> | null = null;
  return () => (result ??= work());
};

describe('ranges of pages', () => {
  const expected = ['big', 'parts'].map((table) => ({
    table,
    sum: once(async () => (await run(CHECKSUM(table)))[0]!),
  }));
  test.each(LANES)('return every row once: %s', async (lane) => {
    for (const { table, sum } of expected) {
      const stream = await streamNamed(sides.source, table);
      const from = slowSource(3);
      const as = `${table}_${lane.replace('-', '_')}`;
      const counts = await moveStream({
        from: from.ctx,
        to: destinationConfig(sides.destination).ctx,
        request: requestOf(stream),
        target: targetOf(stream, { table: as, stream_id: as }),
        lane,
      });
      const there = await sum();
      expect((await sides.destination.sql.unsafe(CHECKSUM(as)))[0]).toEqual(there);
      expect(counts.rows_loaded).toBe(there.n);
      // How many join depends on the speed of the destination; a single one would read no ranges in parallel.
      expect(linesOf(from).length).toBeWithin(2, 4);
      expect(copiesOf(from).length).toBeGreaterThan(12);
    }
    await until(async () => (await backends(sides.source)) === 0);
  });

  test('return every row once while the log is followed, at the position where the log goes on', async () => {
    const { host, port } = { host: '127.0.0.1', port: proxy.port };
    const more = { parallel_reads: 3, host, port, ssl_mode: 'disable', replication: 'logical' } as const;
    const from = sourceConfig(sides.source, more);
    const [stream, reader_id] = [await streamNamed(sides.source, 'big'), crypto.randomUUID()];
    const request = requestOf(stream, { sync_mode: 'incremental', reader_id });
    const copies = await postgresSource.replication!.copy(from.ctx, { reader_id, streams: [request] });
    try {
      await run(`insert into big (id) values (60000)`);
      const ids: string[] = [];
      for await (const { rows, changes } of copies.read(0)) if (!changes) for (const [id] of rows) ids.push(id!);
      expect(ids).toHaveLength(ROWS);
      expect(new Set(ids).size).toBe(ROWS);
      expect(ids).not.toContain('60000');
      expect(copiesOf(from).length).toBeGreaterThan(12);
      expect(copies.state(0).cursor).toMatch(/^[0-9A-F]{8}\/[0-9A-F]{8}$/);
    } finally {
      await copies.close();
      await postgresSource.release!(from.ctx, reader_id);
      await run(`delete from big where id = 60000`);
    }
  });

  test('rows are counted while they arrive, and exactly at the end', async () => {
    const stream = await streamNamed(sides.source, 'big');
    for (const format of ['pgcopy-binary', 'pgcopy-text'] as const) {
      const copy = await postgresSource.copy!(slowSource(2).ctx, requestOf(stream), format);
      const seen: number[] = [];
      for await (const _ of copy.chunks) seen.push(copy.rows());
      expect(copy.rows()).toBe(ROWS);
      expect(seen.length).toBeGreaterThan(50);
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    }
  });

  test('one connection reads small tables, filtered tables, views, or everything if configured', async () => {
    const lines = async (name: string, more: object, parallel_reads = 2) => {
      const from = slowSource(parallel_reads);
      const copy = await postgresSource.copy!(
        from.ctx,
        requestOf(await streamNamed(sides.source, name), more),
        'pgcopy-text',
      );
      for await (const _ of copy.chunks) continue;
      return linesOf(from).length;
    };
    expect(await lines('small', {})).toBe(1);
    expect(await lines('seen', {})).toBe(1);
    expect(await lines('big', { filters: [{ field: 'id', operator: 'lt', value: 10 }] })).toBe(1);
    expect(await lines('big', {}, 1)).toBe(1);
    expect(await lines('big', {})).toBe(2);
  });

  test('cover any number of pages without gaps, large ranges first', () => {
    expect(pageRanges(5, 2)).toEqual([
      `ctid >= '(0,0)' and ctid < '(2,0)'`,
      `ctid >= '(2,0)' and ctid < '(3,0)'`,
      `ctid >= '(3,0)' and ctid < '(4,0)'`,
      `ctid >= '(4,0)'`,
    ]);
    expect(pageRanges(0, 2)).toEqual([`ctid >= '(0,0)'`]);
    for (const [pages, readers] of [
      [4096, 2],
      [4_294_967_295, 3],
      [100_000, 16],
    ] as const) {
      const ranges = pageRanges(pages, readers);
      const bounds = ranges.map((range) => [...range.matchAll(/\((\d+),0\)/g)].map(([, page]) => Number(page)));
      expect(bounds[0]).toEqual([0, Math.ceil(pages / (2 * readers))]);
      bounds.slice(1).forEach(([start], at) => expect(start).toBe(bounds[at]?.[1]));
      expect(bounds.at(-1)).toHaveLength(1);
      expect(pages - (bounds.at(-1)?.[0] ?? 0)).toBeLessThanOrEqual(Math.ceil(pages / (readers * 16)));
      expect(ranges.length).toBeLessThan(readers * 12);
    }
  });
});

describe('one snapshot for all connections', () => {
  test('concurrent transfers and rows moved to other pages do not change the sum', async () => {
    await run(`create table accounts (id int primary key, amount int not null, note text) with (fillfactor = 100);
      insert into accounts select g, 100, repeat(md5(g::text), 40) from generate_series(1, 30000) g`);
    const writing = new AbortController();
    const writers = [1, 2].map(async () => {
      for (let moves = 0; !writing.signal.aborted || moves < 20; moves += 1) {
        const [a, b] = [1 + Math.floor(Math.random() * 15_000), 15_001 + Math.floor(Math.random() * 15_000)];
        await sides.source.sql.begin(async (sql) => {
          await sql`update accounts set amount = amount - 1, note = note || 'x' where id = ${a}`;
          await sql`update accounts set amount = amount + 1, note = note || 'x' where id = ${b}`;
        });
        await Bun.sleep(5);
      }
    });
    const stream = await streamNamed(sides.source, 'accounts');
    for (let round = 0; round < 3; round += 1) {
      const from = slowSource(2);
      let sum = 0;
      const ids = new Set<string | null>();
      for await (const batch of postgresSource.read(from.ctx, requestOf(stream))) {
        for (const [id, amount] of batch.rows) {
          sum += Number(amount);
          ids.add(id ?? null);
        }
      }
      expect([sum, ids.size, linesOf(from).length]).toEqual([3_000_000, 30_000, 2]);
    }
    writing.abort();
    await Promise.all(writers);
  });

  test('a TRUNCATE during the read waits for all connections', async () => {
    await run(
      `create table doomed (like big including storage) with (fillfactor = 25); insert into doomed select * from big`,
    );
    const stream = await streamNamed(sides.source, 'doomed');
    const from = slowSource(2);
    const copy = await postgresSource.copy!(from.ctx, requestOf(stream), 'pgcopy-binary');
    const chunks = copy.chunks[Symbol.asyncIterator]();
    await untilReaders(chunks, 2);
    const truncated = run('truncate doomed').execute();
    await until(
      async () => (await run("select 1 from pg_locks where not granted and mode = 'AccessExclusiveLock'")).length > 0,
    );
    while (!(await chunks.next()).done) continue;
    expect([copy.rows(), linesOf(from).length]).toEqual([ROWS, 2]);
    await truncated;
  });

  test('the read continues without connections that cannot be opened', async () => {
    const from = slowSource(3);
    const { connect } = from.ctx;
    let asked = 0;
    from.ctx.connect = (to) => (++asked > 1 ? Promise.reject(new Error('too many connections')) : connect(to));
    const stream = await streamNamed(sides.source, 'big');
    const copy = await postgresSource.copy!(from.ctx, requestOf(stream), 'pgcopy-binary');
    for await (const _ of copy.chunks) continue;
    // Both others at once, and none after them.
    expect([copy.rows(), asked]).toEqual([ROWS, 3]);
  });
});

describe('an early end', () => {
  const started = async () => {
    const from = slowSource(2);
    const stream = await streamNamed(sides.source, 'big');
    const copy = await postgresSource.copy!(from.ctx, requestOf(stream), 'pgcopy-binary');
    const chunks = copy.chunks[Symbol.asyncIterator]();
    await untilReaders(chunks, 2);
    return { ...from, chunks };
  };
  const noneLeft = () => until(async () => (await backends(sides.source)) === 0);

  test('by a stop: every connection is closed, and the reason is thrown', async () => {
    const { abort, chunks } = await started();
    abort.abort(new Error('stop'));
    const rest = async () => {
      while (!(await chunks.next()).done) continue;
    };
    expect(rest()).rejects.toThrow('stop');
    await noneLeft();
  });

  test('by a consumer that leaves the loop', async () => {
    const { chunks } = await started();
    await chunks.return!(undefined);
    await noneLeft();
  });

  test('by a lost connection: its error is thrown, and no other connection remains', async () => {
    const { chunks } = await started();
    // The read continues without a connection lost before it reads.
    const reading = `from pg_stat_activity where datname = current_database()
      and application_name = 'data-pipelines' and query like 'copy (%'`;
    await until(async () => (await run(`select 1 ${reading}`)).length === 2);
    await run(`select pg_terminate_backend(pid) ${reading} order by backend_start desc limit 1`);
    const rest = async () => {
      while (!(await chunks.next()).done) continue;
    };
    expect(await rest().catch((error) => error.code)).toBe('connection_lost');
    await noneLeft();
  });
});
