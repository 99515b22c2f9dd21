import { beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { APPLICATION_NAME } from '../../server/connectors/postgres/connection/client.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { until } from '../support/until.ts';
import {
  destinationConfig,
  moveStream,
  requestOf,
  sourceConfig,
  streamNamed,
  twoDatabases,
} from './postgres-support.ts';
import { CHECKSUM, type Destination, slowLine } from './slow-line.ts';
import { errorOf } from './writing.ts';

const ROWS = 30_001;
const OLD = [{ id: -1 }];

const sides = twoDatabases();
const at = slowLine(sides, {
  mode: 'overwrite',
  bytes_per_second: 2_000_000,
  create: (table) => `create table ${table} (id int primary key); insert into ${table} values (-1)`,
});
const { run, targetFor, streamOf, opened, expectNothingLeft } = at;

/** Some 32 MB, one row of which is larger than any buffer. */
beforeAll(async () => {
  await sides.source.sql.unsafe(`
    create table big (id int primary key, note text, amount numeric, body bytea);
    insert into big select g, repeat(md5(g::text), 30), g * 1.25, decode(md5(g::text), 'hex') from generate_series(1, 30000) g;
    insert into big values (40000, repeat('ä€😀\\\t', 200000), null, null)`);
});

const sent = ({ entries }: Destination, name: string) => entries.filter(({ method }) => method === name);
const content = () => run(`select * from ${at.table} order by 1 limit 3`);
const underway = () => at.underway(2);

describe('several sessions that fill a new table', () => {
  test.each(['pgcopy-binary', 'pgcopy-text', 'rows'] as const)('store every row once: %s', async (lane) => {
    const stream = await streamNamed(sides.source, 'big');
    const request = requestOf(stream);
    const [expected] = await sides.source.sql.unsafe(`${CHECKSUM} from big t`);
    const to = at.destination(3);
    const joined = underway();
    const counts = await moveStream({
      from: sourceConfig(sides.source).ctx,
      to: to.ctx,
      request,
      target: await targetFor(),
      lane,
    });
    await joined;
    expect((await run(`${CHECKSUM} from ${at.table} t`))[0]).toEqual(expected);
    const alone = destinationConfig(sides.destination, { parallel_writes: 1 });
    const same = await moveStream({
      from: sourceConfig(sides.source).ctx,
      to: alone.ctx,
      request,
      target: await targetFor({ fence: 2, stream_run_id: 'alone' }),
      lane,
    });
    expect(counts).toEqual(same);
    expect(counts.rows_loaded).toBe(ROWS);
    expect([sent(alone, 'CONNECT').length, sent(alone, 'COPY').length]).toEqual([1, 1]);
    // The first one begins a second COPY once the others see the table. How many join depends on buffers on the way.
    expect(sent(to, 'CONNECT').length).toBeWithin(2, 4);
    expect(sent(to, 'COPY').length).toBeWithin(3, 5);
    await expectNothingLeft();
    await at.closed();
  });

  test('readers see the old rows until the last session has ended', async () => {
    const writer = await opened(at.destination(2));
    let seen: unknown;
    await writer.pipe!(
      await streamOf(async () => {
        await underway();
        seen = [...(await content())];
      }),
    );
    expect(seen).toEqual(OLD);
    expect([...(await content())]).toEqual(OLD as never);
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    expect((await run(`${CHECKSUM} from ${at.table} t`))[0]).toMatchObject({ n: ROWS, ids: ROWS });
    await expectNothingLeft();
  });

  test('the load goes on without a session that cannot be opened', async () => {
    const to = at.destination(3);
    const { connect } = to.ctx;
    let asked = 0;
    to.ctx.connect = (target) => {
      if (++asked === 1) return connect(target);
      at.open();
      return Promise.reject(new Error('too many connections'));
    };
    const writer = await opened(to);
    await writer.pipe!(await streamOf(() => Promise.resolve()));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    // Both others at once, and none after them.
    expect([asked, sent(to, 'COPY').length]).toEqual([3, 1]);
  });

  test('a table that was missing appears with all rows, and later rows are added', async () => {
    await run(`drop table ${at.table}`);
    const writer = await opened(at.destination(2), { mode: 'append' });
    let seen: unknown;
    await writer.pipe!(
      await streamOf(async () => {
        await underway();
        seen = (await run(`select to_regclass('${at.table}') as found`))[0]!.found;
      }),
    );
    expect(seen).toBeNull();
    await writer.checkpoint({ cursor: '1' });
    await expectNothingLeft();
    await writer.pipe!(await streamOf(() => Promise.resolve()));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: 2 * ROWS });
    expect((await run(`${CHECKSUM} from ${at.table} t`))[0]).toMatchObject({ n: 2 * ROWS, ids: ROWS });
    await expectNothingLeft();
  });

  test('a table that was created meanwhile keeps its rows', async () => {
    await run(`drop table ${at.table}`);
    const writer = await opened(at.destination(2), { mode: 'append' });
    await writer.pipe!(
      await streamOf(async () => {
        await underway();
        await run(`create table ${at.table} (id int); insert into ${at.table} values (-1)`);
      }),
    );
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    expect((await run(`${CHECKSUM} from ${at.table} t`))[0]).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('a table that becomes visible with others waits for them', async () => {
    const writer = await opened(at.destination(2), { publish_with: 'moment' });
    await writer.pipe!(await streamOf(underway));
    await writer.finish(null);
    expect([...(await content())]).toEqual(OLD as never);
    const streams = [{ stream_id: at.table, stream_run_id: 'stream-run', fence: 1 }];
    const group = { connection_id: 'connection', schema: null, publish_with: 'moment', streams };
    await postgresDestination.publish!(destinationConfig(sides.destination).ctx, group);
    expect((await run(`${CHECKSUM} from ${at.table} t`))[0]).toMatchObject({ n: ROWS, ids: ROWS });
    await expectNothingLeft();
  });

  test('rows that are dropped before they became visible do not count, also after a second attempt is killed', async () => {
    const openAt = (fence: number, publish_with: string) =>
      opened(destinationConfig(sides.destination), { fence, publish_with });
    const idle = async () => {};
    const first = await openAt(1, 'moment');
    await first.pipe!(await streamOf(idle));
    await first.finish(null);
    const killed = await openAt(2, 'next moment');
    await killed.abort();
    const last = await openAt(3, 'next moment');
    expect(last.committed).toBeNull();
    await last.pipe!(await streamOf(idle));
    expect((await last.finish(null)).rows_loaded).toBe(ROWS);
    const streams = [{ stream_id: at.table, stream_run_id: 'stream-run', fence: 3 }];
    const group = { connection_id: 'connection', schema: null, publish_with: 'next moment', streams };
    await postgresDestination.publish!(destinationConfig(sides.destination).ctx, group);
    await expectNothingLeft();
  });
});

describe('an attempt that ends early leaves the old rows, and no table beside them:', () => {
  const expectUndone = async () => {
    expect([...(await content())]).toEqual(OLD as never);
    await expectNothingLeft();
    await at.closed();
  };
  const endLast = () =>
    run(`select pg_terminate_backend(pid) from (select p.pid from pg_stat_progress_copy p join pg_stat_activity a using (pid)
      where p.datname = current_database() order by a.backend_start desc limit 1) last`);

  test('a session that is lost fails the stream with its own error', async () => {
    const writer = await opened(at.destination(3));
    const act = async () => {
      await underway();
      await endLast();
    };
    const error = await errorOf(streamOf(act).then((stream) => writer.pipe!(stream).then(() => writer.finish(null))));
    expect(error?.code).toBe('connection_lost');
    await writer.abort();
    await expectUndone();
  });

  test('a row that a session refuses fails the stream with its own error', async () => {
    const writer = await opened(at.destination(2));
    const rest = 'x'.repeat(1000);
    const row = (id: number | string) => `${id}\t${rest}\t1\t\\\\x00\n`;
    async function* chunks() {
      const waiting = underway();
      waiting.catch(() => {});
      for (let id = 1; id < ROWS; id += 50) {
        yield Buffer.from(Array.from({ length: 50 }, (_, offset) => row(id + offset)).join(''));
      }
      await waiting;
      yield Buffer.from(row('not a number'));
    }
    const stream = { format: 'pgcopy-text' as const, chunks: chunks(), rows: () => ROWS };
    const error = await errorOf(writer.pipe!(stream).then(() => writer.finish(null)));
    expect(error?.code).toBe('invalid_value');
    await writer.abort();
    await expectUndone();
  });

  test('a stop ends all sessions', async () => {
    const to = at.destination(3);
    const writer = await opened(to);
    const act = async () => {
      await underway();
      to.abort.abort(new Error('stop'));
    };
    const error = await errorOf(streamOf(act).then((stream) => writer.pipe!(stream).then(() => writer.finish(null))));
    expect(error?.message).toBe('stop');
    await writer.abort();
    await expectUndone();
  });

  test('one that stands still is ended by the next one, and commits nothing', async () => {
    const old = await opened(at.destination(3));
    let replaced = Promise.resolve();
    const replace = async () => {
      await underway();
      const writer = await opened(destinationConfig(sides.destination), { fence: 2 });
      await writer.write({ rows: [['7', 'new', null, null]], bytes: 10 });
      await writer.finish(null);
    };
    const stream = await streamOf(() => (replaced = replace()));
    const error = await errorOf(old.pipe!(stream).then(() => old.finish(null)));
    await replaced;
    expect(error?.code).toBe('connection_lost');
    await old.abort();
    expect([...(await run(`select id, note from ${at.table}`))]).toEqual([{ id: 7, note: 'new' }] as never);
    await expectNothingLeft();
  });

  test('a session of it that joins while the next one is about to drop its table is ended as well', async () => {
    const old = await opened(at.destination(2));
    const lose = async () => {
      await underway();
      await run(`select pg_terminate_backend(pid) from pg_stat_progress_copy where datname = current_database()`);
    };
    await errorOf(streamOf(lose).then((stream) => old.pipe!(stream)));
    const fresh = await at.beside();
    // Holds the first drop, which has looked for writers by then, until one more is there. No rollback undoes a nextval.
    await run(`create sequence public.first_drop;
      create function await_writer() returns event_trigger language plpgsql as $$ begin
        while not (select is_called from public.first_drop) and not exists (
          select from pg_locks where relation = to_regclass('public.${fresh}') and mode = 'RowExclusiveLock')
        loop perform pg_sleep(0.01); end loop;
        perform nextval('public.first_drop');
      end $$;
      create event trigger await_writer on ddl_command_start when tag in ('DROP TABLE') execute function await_writer()`);
    const { server } = sides.destination;
    const joining = postgres({ ...server, max: 1, connection: { application_name: APPLICATION_NAME } });
    const joined = joining.begin(async (tx) => {
      const isDropping = () =>
        run(`select from pg_stat_activity where query like '%drop table%' and wait_event = 'PgSleep'`);
      await until(async () => (await isDropping()).length > 0);
      await tx.unsafe(`insert into ${fresh} (id) values (-2)`);
      await until(() => isReplaced);
    });
    let isReplaced = false;
    const [lost, writer] = await Promise.all([
      errorOf(joined),
      opened(destinationConfig(sides.destination), { fence: 2 }).finally(() => (isReplaced = true)),
    ]);
    await run('drop event trigger await_writer; drop function await_writer; drop sequence public.first_drop');
    await joining.end();
    expect(lost).toBeInstanceOf(Error);
    await Promise.all([old.abort(), writer.abort()]);
    await expectUndone();
  });

  test('one whose claim is lost shares no table', async () => {
    const old = await opened(at.destination(3));
    const newer = await opened(destinationConfig(sides.destination), { fence: 2 });
    const error = await errorOf(
      streamOf(() => Promise.resolve()).then((stream) => old.pipe!(stream).then(() => old.finish(null))),
    );
    expect(error?.code).toBe('fenced');
    await Promise.all([old.abort(), newer.abort()]);
    await expectUndone();
  });

  test('a run whose tables become visible together removes what a lost attempt has left', async () => {
    const writer = await opened(at.destination(2), { publish_with: 'moment' });
    const act = async () => {
      await underway();
      await run(`select pg_terminate_backend(pid) from pg_stat_progress_copy where datname = current_database()`);
    };
    const error = await errorOf(streamOf(act).then((stream) => writer.pipe!(stream).then(() => writer.finish(null))));
    expect(error?.code).toBe('connection_lost');
    expect(await at.beside()).toStartWith(`${at.table}__new`);
    const streams = [{ stream_id: at.table, stream_run_id: 'stream-run', fence: 1 }];
    const group = { connection_id: 'connection', schema: null, publish_with: 'moment', streams };
    await postgresDestination.discard!(destinationConfig(sides.destination).ctx, group);
    await expectUndone();
  });
});
