import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { ByteStream, Writer, WriteTarget } from '../../server/connectors/contract/connector.ts';
import type { PostgresDestinationConfig } from '../../server/connectors/postgres/connection/settings.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { type Limits, startTcpProxy } from '../support/tcp-proxy.ts';
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
import { errorOf } from './writing.ts';

const ROWS = 15_000;

const sides = twoDatabases();
const run = (sql: string) => sides.destination.sql.unsafe(sql);
/** The line to the destination. */
const line: Limits = {};
let proxy: Awaited<ReturnType<typeof startTcpProxy>>;
let table = '';
let count = 0;
const writers: Writer[] = [];

/** Some 15 MB. */
beforeAll(async () => {
  proxy = await startTcpProxy(sides.destination.server, line);
  await sides.source.sql.unsafe(`
    create table big (id int primary key, note text, amount numeric, body bytea, at timestamptz);
    insert into big select g, repeat(md5(g::text), 30), g * 1.25, decode(md5(g::text), 'hex'), '2025-01-02' from generate_series(1, ${ROWS}) g`);
});
beforeEach(async () => {
  // So slow that other sessions join even where this process waits for a processor.
  line.upload_bytes_per_second = 1_500_000;
  table = `table_${++count}`;
  await run(
    `create table ${table} (id int, note text, amount numeric, body bytea, at timestamptz);
     insert into ${table} values (-1, 'old', null, null, '2025-01-01')`,
  );
});
afterEach(async () => {
  for (const writer of writers.splice(0)) await writer.abort();
});
afterAll(() => proxy?.stop());

const slowDestination = (parallel_writes: number, more: Partial<PostgresDestinationConfig> = {}) =>
  destinationConfig(sides.destination, {
    parallel_writes,
    port: proxy.port,
    host: '127.0.0.1',
    ssl_mode: 'disable',
    ...more,
  });
type Destination = ReturnType<typeof slowDestination>;

const CHECKSUM = `select count(*)::int as n, count(distinct id)::int as ids, md5(string_agg(md5(t::text), '' order by id)) as sum`;
const content = async () => (await run(`${CHECKSUM} from ${table} t`))[0];
const copied = async () => (await sides.source.sql.unsafe(`${CHECKSUM} from big t`))[0];
const withoutOld = async () => (await run(`${CHECKSUM} from ${table} t where id > 0`))[0];

async function targetFor(more: Partial<WriteTarget> = {}): Promise<WriteTarget> {
  const stream = await streamNamed(sides.source, 'big');
  return targetOf(stream, { table, stream_id: table, mode: 'append', ...more });
}

async function opened(to: Destination, more: Partial<WriteTarget> = {}): Promise<Writer> {
  const writer = await postgresDestination.open(to.ctx, await targetFor(more));
  writers.push(writer);
  return writer;
}

/** Rows of `big`, with a pause before their end that lasts as long as `meanwhile`. */
async function streamOf(meanwhile: () => Promise<unknown> = async () => {}): Promise<ByteStream> {
  const request = requestOf(await streamNamed(sides.source, 'big'));
  const stream = await postgresSource.copy!(sourceConfig(sides.source).ctx, request, 'pgcopy-binary');
  async function* chunks() {
    const waiting = meanwhile();
    waiting.catch(() => {});
    yield* stream.chunks;
    await waiting;
  }
  return { ...stream, chunks: chunks() };
}

/** The table that other sessions copy into. */
const beside = async () =>
  (await run(`select relname from pg_class where relkind = 'r' and relname like '${table}\\_\\_new%'`))[0]?.relname as
    | string
    | undefined;

async function underway(): Promise<void> {
  const copies = () =>
    run(`select from pg_stat_progress_copy p join pg_class c on c.oid = p.relid
      where p.datname = current_database() and c.relname like '${table}%'`);
  await until(async () => (await beside()) !== undefined && (await copies()).length > 1);
  delete line.upload_bytes_per_second;
}

/** Why no other session joins. The line is as fast as it can be from then on. */
function warningsOf(to: Destination): { reasons: string[]; warned(): Promise<void> } {
  const reasons: string[] = [];
  to.ctx.log.warn = (_, context) => {
    reasons.push(JSON.stringify(context));
    delete line.upload_bytes_per_second;
  };
  return { reasons, warned: () => until(() => reasons.length > 0) };
}

/** Nothing beside the table itself, no note of anything else, and no session. */
async function expectNothingLeft(): Promise<void> {
  expect(await beside()).toBeUndefined();
  const noted = await run(`select 1 from _pipeline_state where stream_id = '${table}' and pending_table is not null`);
  expect(noted.length).toBe(0);
  await until(async () => (await backends(sides.destination)) === 0);
}

describe('several sessions that append to a table', () => {
  test.each(['pgcopy-binary', 'pgcopy-text', 'rows'] as const)('store every row once: %s', async (lane) => {
    const request = requestOf(await streamNamed(sides.source, 'big'));
    const from = sourceConfig(sides.source).ctx;
    const joined = underway();
    const counts = await moveStream({ from, to: slowDestination(4).ctx, request, target: await targetFor(), lane });
    await joined;
    expect(counts.rows_loaded).toBe(ROWS);
    expect(await withoutOld()).toEqual(await copied());
    expect(await content()).toMatchObject({ n: ROWS + 1 });
    await expectNothingLeft();
  });

  test('show their rows with the commit of the first one, all at once', async () => {
    const writer = await opened(slowDestination(3));
    await writer.pipe!(await streamOf(underway));
    expect(await content()).toMatchObject({ n: 1 });
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    expect(await content()).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('do so for each checkpoint', async () => {
    const writer = await opened(slowDestination(3));
    await writer.pipe!(await streamOf(underway));
    await writer.checkpoint({ cursor: '1' });
    expect(await content()).toMatchObject({ n: ROWS + 1 });
    expect(await beside()).toBeUndefined();
    line.upload_bytes_per_second = 1_500_000;
    await writer.pipe!(await streamOf(underway));
    expect(await writer.finish({ cursor: '2' })).toMatchObject({ rows_loaded: 2 * ROWS });
    expect(await content()).toMatchObject({ n: 2 * ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('let the first one go on alone where they may not create a table', async () => {
    const { server } = sides.destination;
    const role = `${server.database}_appender`;
    await run(`create role ${role} login password 'p'; grant select, insert on ${table} to ${role}`);
    // Creates the table of states.
    const before = await opened(destinationConfig(sides.destination), { stream_id: 'before' });
    await before.abort();
    await run(`revoke create on schema public from public; grant all on _pipeline_state to ${role}`);
    try {
      const to = slowDestination(3, { username: role, password: 'p' });
      const { reasons, warned } = warningsOf(to);
      const writer = await opened(to);
      await writer.pipe!(await streamOf(warned));
      expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
      expect(reasons[0]).toContain('permission denied');
      expect(await content()).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
      await expectNothingLeft();
    } finally {
      await run(`drop owned by ${role}; drop role ${role}`);
    }
  });

  test('leave a table alone whose rules would change what is moved', async () => {
    await run(`create rule no_move as on insert to ${table} do instead nothing`);
    const to = slowDestination(3);
    const { reasons, warned } = warningsOf(to);
    const writer = await opened(to);
    await writer.pipe!(await streamOf(warned));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    expect(reasons[0]).toContain('Rules');
    expect(await content()).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('do not hold up the first one while somebody waits for its locks', async () => {
    const to = slowDestination(3);
    const { reasons, warned } = warningsOf(to);
    const writer = await opened(to);
    let altered: Promise<unknown> = Promise.resolve();
    const stream = await streamOf(async () => {
      const locks = (mode: string) =>
        run(`select from pg_locks where relation = '${table}'::regclass and mode = '${mode}'`);
      await until(async () => (await locks('RowExclusiveLock')).length > 0);
      altered = run(`alter table ${table} add column more int`).then(() => {});
      await until(async () => (await locks('AccessExclusiveLock')).length > 0);
      await warned();
    });
    await writer.pipe!(stream);
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    await altered;
    expect(reasons[0]).toContain('lock timeout');
    expect(await content()).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('replace the rows of a window by the same commit', async () => {
    const day = { column: 'at', start: '2025-01-01T00:00:00.000Z', end: null };
    const writer = await opened(slowDestination(3), { replace_window: day });
    await writer.pipe!(await streamOf(underway));
    expect(await content()).toMatchObject({ n: 1 });
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS, rows_deleted: 1 });
    expect(await content()).toMatchObject({ n: ROWS, ids: ROWS });
    await expectNothingLeft();
  });
});

describe('an attempt to append by several sessions that ends early leaves the old rows, and no table beside them:', () => {
  const expectUndone = async () => {
    expect(await content()).toMatchObject({ n: 1 });
    await expectNothingLeft();
  };
  const ofLast = `(select p.pid from pg_stat_progress_copy p join pg_stat_activity a using (pid)
      where p.datname = current_database() order by a.backend_start desc limit 1) last`;

  test('a session that is lost', async () => {
    const writer = await opened(slowDestination(3));
    const stream = await streamOf(async () => {
      await underway();
      await run(`select pg_terminate_backend(pid) from ${ofLast}`);
    });
    const error = await errorOf(writer.pipe!(stream).then(() => writer.finish(null)));
    expect(error?.code).toBe('connection_lost');
    await writer.abort();
    await expectUndone();
  });

  test('the first session, lost while it moves the rows of the others', async () => {
    await run(`create function sleep_in_move() returns trigger language plpgsql as $$ begin
        if current_query() ilike 'insert%' then perform pg_sleep(600); end if;
        return null;
      end $$;
      create trigger sleep_in_move before insert on ${table} for each statement execute function sleep_in_move()`);
    const writer = await opened(slowDestination(3));
    await writer.pipe!(await streamOf(underway));
    const lost = errorOf(writer.finish(null));
    const moving = `(select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep') one`;
    await until(async () => (await run(`select from ${moving}`)).length > 0);
    expect((await run(`select count(*)::int as n from ${await beside()}`))[0]!.n).toBeGreaterThan(0);
    await run(`select pg_terminate_backend(pid) from ${moving}`);
    expect((await lost)?.code).toBe('connection_lost');
    await writer.abort();
    await run(`drop function sleep_in_move cascade`);
    await expectUndone();
  });

  test('a stop', async () => {
    const to = slowDestination(3);
    const writer = await opened(to);
    const stream = await streamOf(async () => {
      await underway();
      to.abort.abort(new Error('stop'));
    });
    const error = await errorOf(writer.pipe!(stream).then(() => writer.finish(null)));
    expect(error?.message).toBe('stop');
    await writer.abort();
    await expectUndone();
  });

  test('a row that the table refuses and the one beside it takes', async () => {
    await run(`alter table ${table} add constraint small check (id < ${ROWS})`);
    const writer = await opened(slowDestination(3));
    const error = await errorOf(streamOf(underway).then((s) => writer.pipe!(s).then(() => writer.finish(null))));
    expect(error?.code).toBe('constraint_violation');
    await writer.abort();
    await expectUndone();
  });

  test('one that stands still, which the next one ends', async () => {
    const old = await opened(slowDestination(3));
    let replaced = Promise.resolve();
    const replace = async () => {
      await underway();
      const writer = await opened(destinationConfig(sides.destination), { fence: 2 });
      await writer.write({ rows: [['7', 'new', null, null, null]], bytes: 10 });
      await writer.finish(null);
    };
    const stream = await streamOf(() => (replaced = replace()));
    const error = await errorOf(old.pipe!(stream).then(() => old.finish(null)));
    await replaced;
    expect(error?.code).toBe('connection_lost');
    await old.abort();
    expect([...(await run(`select id, note from ${table} order by 1`))]).toEqual([
      { id: -1, note: 'old' },
      { id: 7, note: 'new' },
    ] as never);
    await expectNothingLeft();
  });

  test('one whose claim is lost, which creates no table', async () => {
    const to = slowDestination(3);
    warningsOf(to);
    const old = await opened(to);
    const newer = await opened(destinationConfig(sides.destination), { fence: 2 });
    const error = await errorOf(streamOf().then((stream) => old.pipe!(stream).then(() => old.finish(null))));
    expect(error?.code).toBe('fenced');
    await Promise.all([old.abort(), newer.abort()]);
    await expectUndone();
  });
});
