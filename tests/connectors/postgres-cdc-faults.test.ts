import { describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import type { Batch, StreamState } from '../../server/connectors/contract/connector.ts';
import { openLogSession } from '../../server/connectors/postgres/cdc/read-log.ts';
import { slotName } from '../../server/connectors/postgres/cdc/replication-slots.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { followers } from './postgres-cdc-support.ts';
import { requestOf } from './postgres-support.ts';
import { errorOf } from './writing.ts';

const { sides, follow, both, context, discovered } = followers();
const sql = (text: string) => sides.source.sql.unsafe(text);

describe('nothing is lost or doubled', () => {
  test('with concurrent writes during the snapshot and between runs', async () => {
    await sql(`create table busy (id int primary key, n int, filler text);
      insert into busy select g, 0, repeat('x', 200) from generate_series(1, 20000) g`);
    const { host, port, database, username, password } = sides.source.server;
    const writer = postgres({ host, port, database, username, password, max: 3, onnotice: () => {} });
    const stop = new AbortController();
    let next = 20_000;
    const write = async () => {
      while (!stop.signal.aborted) {
        const id = 1 + Math.floor(Math.random() * 20_000);
        await writer`update busy set n = n + 1 where id = ${id}`;
        await writer`insert into busy values (${++next}, 1, 'new')`;
        await writer`delete from busy where id = ${1 + Math.floor(Math.random() * next)}`;
        await writer`update busy set id = ${++next} where id = ${1 + Math.floor(Math.random() * 20_000)}`;
      }
    };
    const writers = [write(), write(), write()];
    const follower = await follow('busy');
    await follower.run();
    for (let run = 0; run < 4; run += 1) await follower.run();
    stop.abort();
    await Promise.all(writers);
    await follower.run();
    await writer.end();
    const after = await both('busy');
    expect(after.destination).toEqual(after.source);
    expect(next).toBeGreaterThan(20_010);
  });

  test('between snapshot and log: each row is in exactly one of them', async () => {
    await sql('create table bordered (id int primary key)');
    const { host, port, database, username, password } = sides.source.server;
    const writer = postgres({ host, port, database, username, password, max: 3, onnotice: () => {} });
    const stop = new AbortController();
    let next = 0;
    const write = async () => {
      while (!stop.signal.aborted) await writer`insert into bordered values (${++next})`;
    };
    const writers = [write(), write(), write()];
    const reads: { id: number; rows: number }[][] = [];
    for (let round = 0; round < 5; round += 1) {
      const follower = await follow('bordered', { mode: 'append', target: { table: `bordered_${round}` } });
      await follower.run();
      await follower.run();
      reads.push([
        ...(await sides.destination.sql.unsafe(
          `select id, count(*)::int as rows from bordered_${round} where id is not null group by id having count(*) > 1`,
        )),
      ] as never);
    }
    stop.abort();
    await Promise.all(writers);
    await writer.end();
    expect(next).toBeGreaterThan(500);
    expect(reads).toEqual([[], [], [], [], []]);
  });

  test('on resuming from a state in the middle of a read', async () => {
    await sql('create table midst (id int primary key)');
    const follower = await follow('midst');
    await follower.run();
    for (let part = 0; part < 25; part += 1) {
      await sql(`insert into midst select g from generate_series(${part * 1000 + 1}, ${part * 1000 + 1000}) g`);
    }
    const [first, ...rest] = await follower.read();
    expect(first!.state).toBeDefined();
    expect(first!.rows.length % 1000).toBe(0);
    expect(rest.length).toBeGreaterThan(0);
    const again = await follower.read({ state: first!.state! });
    expect(again.flatMap(({ rows }) => rows).length).toBe(25_000 - first!.rows.length);
  });

  test('when the confirmation is lost after the commit, and when an old reader still holds the slot', async () => {
    await sql(
      `create table unacknowledged (id int primary key, name text); insert into unacknowledged values (1, 'a')`,
    );
    const follower = await follow('unacknowledged', { mode: 'append' });
    await follower.run();
    await sql(`insert into unacknowledged values (2, 'b')`);
    const acknowledge = postgresSource.acknowledge;
    postgresSource.acknowledge = async () => ({ bytes: 0, is_high: false });
    await follower.run().finally(() => (postgresSource.acknowledge = acknowledge));
    await sql(`insert into unacknowledged values (3, 'c')`);
    // A reader that froze during its read.
    const frozen = context();
    const stream = await discovered('unacknowledged');
    const request = requestOf(stream, {
      sync_mode: 'incremental',
      reader_id: follower.reader_id,
      state: follower.state,
    });
    const reading = postgresSource.read(frozen.ctx, request)[Symbol.asyncIterator]();
    await reading.next();
    await follower.run();
    await reading.return?.();
    const rows = await sides.destination.sql`select id from unacknowledged where id is not null order by id`;
    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  test('after an interrupted read: the next one resumes from the same position', async () => {
    await sql(`create table broken (id int primary key, filler text)`);
    const follower = await follow('broken');
    await follower.run();
    await sql(`insert into broken select g, repeat('y', 500) from generate_series(1, 40000) g`);
    const stopped = context();
    const request = requestOf(await discovered('broken'), {
      sync_mode: 'incremental',
      reader_id: follower.reader_id,
      state: follower.state,
    });
    const reading = postgresSource.read(stopped.ctx, request)[Symbol.asyncIterator]();
    await reading.next();
    stopped.abort.abort(new Error('stopped'));
    expect((await errorOf(reading.next()))?.message).toBe('stopped');
    await until(async () => {
      const [slot] = await sql(
        `select active from pg_replication_slots where slot_name = '${slotName(follower.reader_id)}'`,
      );
      return slot!.active === false;
    });
    expect(await follower.run()).toMatchObject({ rows_loaded: 40_000 });
  });

  test.each(['a table', 'tables'])(
    'after a reader of %s that died while it waited to create its slot',
    async (what) => {
      const name = what === 'tables' ? 'awaited_together' : 'awaited';
      await sql(`create table ${name} (id int primary key); insert into ${name} values (1)`);
      const { reader_id } = await follow(name);
      const stream = await discovered(name);
      const read = async ({ ctx }: ReturnType<typeof context>, state: StreamState | null = null) => {
        const request = requestOf(stream, { sync_mode: 'incremental', reader_id, state });
        if (what !== 'tables') return Array.fromAsync(postgresSource.read(ctx, request));
        const batches = await Array.fromAsync(postgresSource.replication!.read(ctx, { reader_id, streams: [request] }));
        return batches.flatMap(({ parts, states }) => [
          ...parts.map(({ batch }) => batch),
          { rows: [], bytes: 0, state: states?.[0] ?? undefined },
        ]);
      };
      const ids = (batches: Batch[]) =>
        batches.flatMap(({ rows }) => rows.map(([id]) => id)).filter((id) => id !== null);
      const stateAfter = (batches: Batch[]) => batches.findLast(({ state }) => state)!.state!;
      const waiting = async () => {
        const found =
          await sql(`select a.pid from pg_replication_slots s join pg_stat_activity a on a.pid = s.active_pid
        where starts_with(s.slot_name, '${slotName(reader_id)}') and a.wait_event_type = 'Lock'`);
        return found.map(({ pid }) => pid as number);
      };
      const { host, port } = sides.source.server;
      const proxy = await startTcpProxy({ host, port });
      const open = await sides.source.sql.reserve();
      await open.unsafe(`begin; insert into ${name} values (2)`);
      const died = errorOf(read(context({ host: '127.0.0.1', port: proxy.port })));
      await until(async () => (await waiting()).length > 0);
      const [before] = await waiting();
      proxy.stop();
      expect(await died).toMatchObject({ retryable: true });
      const reading = read(context());
      const isWaiting = until(async () => (await waiting()).some((pid) => pid !== before));
      try {
        await Promise.race([reading, isWaiting]);
      } finally {
        await open.unsafe('commit');
        open.release();
      }
      const first = await reading;
      expect(ids(first)).toEqual(['1', '2']);
      await sql(`insert into ${name} values (3)`);
      expect(ids(await read(context(), stateAfter(first)))).toEqual(['3']);
    },
  );

  test.each(['a table', 'tables'])(
    'when the slot of %s is created between the look for it and its creation',
    async (what) => {
      const name = what === 'tables' ? 'raced_together' : 'raced';
      await sql(`create table ${name} (id int primary key); insert into ${name} values (1)`);
      const { reader_id } = await follow(name);
      const stream = await discovered(name);
      const slot = slotName(reader_id);
      const read = async ({ ctx }: ReturnType<typeof context>) => {
        const request = requestOf(stream, { sync_mode: 'incremental', reader_id });
        if (what !== 'tables')
          return (await Array.fromAsync(postgresSource.read(ctx, request))).flatMap(({ rows }) => rows);
        const batches = await Array.fromAsync(postgresSource.replication!.read(ctx, { reader_id, streams: [request] }));
        return batches.flatMap(({ parts }) => parts.flatMap(({ batch }) => batch.rows));
      };
      const raced = context();
      const { start } = raced.ctx.recorder;
      raced.ctx.recorder.start = (request) => {
        if (request.body?.startsWith('CREATE_REPLICATION_SLOT')) {
          const { host, port, database, username, password } = sides.source.server;
          const url = `postgres://${username}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
          const other = `select pg_create_logical_replication_slot('${slot}', 'pgoutput')`;
          expect(Bun.spawnSync(['psql', '-qX', url, '-c', other]).success).toBe(true);
        }
        return start(request);
      };
      expect(await errorOf(read(raced))).toMatchObject({ code: 'replication_slot_in_use', retryable: true });
      expect((await read(context())).flatMap(([id]) => id ?? [])).toEqual(['1']);
    },
  );

  test('after a server that goes away in the middle of a message', async () => {
    await sql('create table cut (id int primary key, filler text)');
    const follower = await follow('cut');
    await follower.run();
    await sql(`insert into cut values (1, repeat('z', 8000000))`);
    const { host, port } = sides.source.server;
    // So slow that the message is still on its way when the first of it has passed.
    const proxy = await startTcpProxy({ host, port }, { bytes_per_second: 400_000 });
    const request = requestOf(await discovered('cut'), {
      sync_mode: 'incremental',
      reader_id: follower.reader_id,
      state: follower.state,
    });
    const { ctx } = context({ host: '127.0.0.1', port: proxy.port });
    const failed = errorOf(postgresSource.read(ctx, request)[Symbol.asyncIterator]().next());
    await until(() => proxy.bytes() > 1_000_000);
    proxy.stop();
    expect(await failed).toMatchObject({ retryable: true });
    expect(await follower.run()).toMatchObject({ rows_loaded: 1 });
    const after = await both('cut');
    expect(after.destination).toEqual(after.source);
  });

  test('while a busy server has much more than was asked for', async () => {
    await sql('create table beyond (id int primary key, filler text)');
    const follower = await follow('beyond');
    await follower.run();
    await sql(`insert into beyond values (0, 'before the end')`);
    follower.meanwhile = {
      before: /^START_REPLICATION/,
      sql: `do $$ begin for n in 1 .. 10000 loop insert into beyond values (n, repeat('x', 1000)); commit; end loop; end $$`,
    };
    const first = await follower.run();
    expect(first.rows_loaded).toBeLessThan(10_000);
    expect(await follower.run()).toMatchObject({ rows_loaded: 10_001 - first.rows_loaded });
    const after = await both('beyond');
    expect(after.destination).toEqual(after.source);
  });

  test('by a server that asks for a heartbeat: it hears of what is committed, not of what has arrived', async () => {
    const { database } = sides.source.server;
    await sql(`create table asked (id int primary key); alter database "${database}" set wal_sender_timeout = '1s'`);
    const follower = await follow('asked');
    await follower.run();
    const name = slotName(follower.reader_id);
    const confirmed = follower.state!.cursor!;
    const replication = await openLogSession(context().ctx);
    try {
      const options = `proto_version '1', publication_names '${name}'`;
      const text = `START_REPLICATION SLOT ${name} LOGICAL ${confirmed} (${options})`;
      const stream = replication.replicate({ text, confirmed, decode: String });
      await sql('insert into asked values (1)');
      const [{ here }] = (await sql('select pg_current_wal_flush_lsn() as here')) as unknown as [{ here: string }];
      // The reply to a request that the server sent after the row.
      await until(async () => {
        const [walsender] = await sql(
          `select sent_lsn >= '${here}' and reply_time > backend_start + interval '2 seconds' as answered
             from pg_stat_replication join pg_replication_slots on active_pid = pid where slot_name = '${name}'`,
        );
        return walsender?.answered === true;
      });
      const [slot] = await sql(
        `select confirmed_flush_lsn <= '${confirmed}' as held from pg_replication_slots where slot_name = '${name}'`,
      );
      expect(slot!.held).toBe(true);
      await stream.end();
    } finally {
      await replication.close();
      await sql(`alter database "${database}" reset wal_sender_timeout`);
    }
    expect(await follower.run()).toMatchObject({ rows_loaded: 1 });
  });

  test('a large transaction arrives in bounded batches, with a state only at its end', async () => {
    await sql(`create table large (id int primary key, filler text)`);
    const follower = await follow('large');
    await follower.run();
    await sql(`insert into large select g, repeat('z', 100) from generate_series(1, 60000) g`);
    await sql(`insert into large values (0, 'last')`);
    const batches = await follower.read();
    expect(batches.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(60_001);
    expect(Math.max(...batches.map(({ bytes }) => bytes))).toBeLessThan(2_200_000);
    expect(batches.length).toBeGreaterThan(2);
    expect(batches.findIndex(({ state }) => state !== undefined)).toBeGreaterThanOrEqual(batches.length - 2);
  });
});
