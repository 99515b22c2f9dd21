import { beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../support/until.ts';
import {
  destinationConfig,
  moveStream,
  requestOf,
  sourceConfig,
  streamNamed,
  twoDatabases,
} from './postgres-support.ts';
import { CHECKSUM, slowLine } from './slow-line.ts';
import { errorOf } from './writing.ts';

const ROWS = 15_000;

const sides = twoDatabases();
const at = slowLine(sides, {
  mode: 'append',
  bytes_per_second: 1_500_000,
  create: (table) => `create table ${table} (id int, note text, amount numeric, body bytea, at timestamptz);
    insert into ${table} values (-1, 'old', null, null, '2025-01-01')`,
});
const { run, targetFor, streamOf, opened, warningsOf } = at;

/** Some 15 MB. */
beforeAll(async () => {
  await sides.source.sql.unsafe(`
    create table big (id int primary key, note text, amount numeric, body bytea, at timestamptz);
    insert into big select g, repeat(md5(g::text), 30), g * 1.25, decode(md5(g::text), 'hex'), '2025-01-02'
      from generate_series(1, ${ROWS}) g`);
});

const content = async () => (await run(`${CHECKSUM} from ${at.table} t`))[0];
const copied = async () => (await sides.source.sql.unsafe(`${CHECKSUM} from big t`))[0];
const withoutOld = async () => (await run(`${CHECKSUM} from ${at.table} t where id > 0`))[0];
const underway = () => at.underway(1);

async function expectNothingLeft(): Promise<void> {
  await at.expectNothingLeft();
  await at.closed();
}

describe('several sessions that append to a table', () => {
  test.each(['pgcopy-binary', 'pgcopy-text', 'rows'] as const)('store every row once: %s', async (lane) => {
    const request = requestOf(await streamNamed(sides.source, 'big'));
    const from = sourceConfig(sides.source).ctx;
    const joined = underway();
    const counts = await moveStream({ from, to: at.destination(4).ctx, request, target: await targetFor(), lane });
    await joined;
    expect(counts.rows_loaded).toBe(ROWS);
    expect(await withoutOld()).toEqual(await copied());
    expect(await content()).toMatchObject({ n: ROWS + 1 });
    await expectNothingLeft();
  });

  test('show their rows with the commit of the first one, all at once', async () => {
    const writer = await opened(at.destination(3));
    await writer.pipe!(await streamOf(underway));
    expect(await content()).toMatchObject({ n: 1 });
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    expect(await content()).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('do so for each checkpoint', async () => {
    const writer = await opened(at.destination(3));
    await writer.pipe!(await streamOf(underway));
    await writer.checkpoint({ cursor: '1' });
    expect(await content()).toMatchObject({ n: ROWS + 1 });
    expect(await at.beside()).toBeUndefined();
    at.slow();
    await writer.pipe!(await streamOf(underway));
    expect(await writer.finish({ cursor: '2' })).toMatchObject({ rows_loaded: 2 * ROWS });
    expect(await content()).toMatchObject({ n: 2 * ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('let the first one go on alone where they may not create a table', async () => {
    const { server } = sides.destination;
    const role = `${server.database}_appender`;
    await run(`create role ${role} login password 'p'; grant select, insert on ${at.table} to ${role}`);
    // Creates the table of states.
    const before = await opened(destinationConfig(sides.destination), { stream_id: 'before' });
    await before.abort();
    await run(`revoke create on schema public from public; grant all on _pipeline_state to ${role}`);
    try {
      const to = at.destination(3, { username: role, password: 'p' });
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
    await run(`create rule no_move as on insert to ${at.table} do instead nothing`);
    const to = at.destination(3);
    const { reasons, warned } = warningsOf(to);
    const writer = await opened(to);
    await writer.pipe!(await streamOf(warned));
    expect(await writer.finish(null)).toMatchObject({ rows_loaded: ROWS });
    expect(reasons[0]).toContain('Rules');
    expect(await content()).toMatchObject({ n: ROWS + 1, ids: ROWS + 1 });
    await expectNothingLeft();
  });

  test('do not hold up the first one while somebody waits for its locks', async () => {
    const to = at.destination(3);
    const { reasons, warned } = warningsOf(to);
    const writer = await opened(to);
    let altered: Promise<unknown> = Promise.resolve();
    const stream = await streamOf(async () => {
      const locks = (mode: string) =>
        run(`select from pg_locks where relation = '${at.table}'::regclass and mode = '${mode}'`);
      await until(async () => (await locks('RowExclusiveLock')).length > 0);
      altered = run(`alter table ${at.table} add column more int`).then(() => {});
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
    const writer = await opened(at.destination(3), { replace_window: day });
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
    const writer = await opened(at.destination(3));
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
      create trigger sleep_in_move before insert on ${at.table} for each statement execute function sleep_in_move()`);
    const writer = await opened(at.destination(3));
    await writer.pipe!(await streamOf(underway));
    const lost = errorOf(writer.finish(null));
    const moving = `(select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep') one`;
    await until(async () => (await run(`select from ${moving}`)).length > 0);
    expect((await run(`select count(*)::int as n from ${await at.beside()}`))[0]!.n).toBeGreaterThan(0);
    await run(`select pg_terminate_backend(pid) from ${moving}`);
    expect((await lost)?.code).toBe('connection_lost');
    await writer.abort();
    await run(`drop function sleep_in_move cascade`);
    await expectUndone();
  });

  test('a stop', async () => {
    const to = at.destination(3);
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
    await run(`alter table ${at.table} add constraint small check (id < ${ROWS})`);
    const writer = await opened(at.destination(3));
    const error = await errorOf(streamOf(underway).then((s) => writer.pipe!(s).then(() => writer.finish(null))));
    expect(error?.code).toBe('constraint_violation');
    await writer.abort();
    await expectUndone();
  });

  test('one that stands still, which the next one ends', async () => {
    const old = await opened(at.destination(3));
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
    expect([...(await run(`select id, note from ${at.table} order by 1`))]).toEqual([
      { id: -1, note: 'old' },
      { id: 7, note: 'new' },
    ] as never);
    await expectNothingLeft();
  });

  test('one whose claim is lost, which creates no table', async () => {
    const to = at.destination(3);
    warningsOf(to);
    const old = await opened(to);
    const newer = await opened(destinationConfig(sides.destination), { fence: 2 });
    const error = await errorOf(streamOf().then((stream) => old.pipe!(stream).then(() => old.finish(null))));
    expect(error?.code).toBe('fenced');
    await Promise.all([old.abort(), newer.abort()]);
    await expectUndone();
  });
});
