import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'bun:test';
import type { ByteStream, Writer, WriteTarget } from '../../server/connectors/contract/connector.ts';
import type { PostgresDestinationConfig } from '../../server/connectors/postgres/connection/settings.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { type Limits, startTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import {
  backends,
  destinationConfig,
  requestOf,
  sourceConfig,
  streamNamed,
  targetOf,
  type TestContext,
  type twoDatabases,
} from './postgres-support.ts';

export type Destination = TestContext<PostgresDestinationConfig>;

export const CHECKSUM = `select count(*)::int as n, count(distinct id)::int as ids,
  md5(string_agg(md5(t::text), '' order by id)) as sum`;

interface Given {
  mode: WriteTarget['mode'];
  bytes_per_second: number;
  /** Statements that create the table. */
  create(table: string): string;
}

/** A PostgreSQL behind a slow line, and a table for each test into which rows of the source's `big` go. */
export function slowLine(sides: ReturnType<typeof twoDatabases>, { mode, bytes_per_second, create }: Given) {
  const line: Limits = {};
  const writers: Writer[] = [];
  let proxy: Awaited<ReturnType<typeof startTcpProxy>>;
  let table = '';
  let count = 0;
  const run = (sql: string) => sides.destination.sql.unsafe(sql);
  beforeAll(async () => {
    proxy = await startTcpProxy(sides.destination.server, line);
  });
  beforeEach(async () => {
    slow();
    table = `table_${++count}`;
    await run(create(table));
  });
  afterEach(async () => {
    for (const writer of writers.splice(0)) await writer.abort();
  });
  afterAll(() => proxy?.stop());

  /** So slow that other sessions join even where this process waits for a processor. */
  function slow(): void {
    line.upload_bytes_per_second = bytes_per_second;
  }
  /** As fast as it can be. */
  function open(): void {
    delete line.upload_bytes_per_second;
  }
  async function targetFor(more: Partial<WriteTarget> = {}): Promise<WriteTarget> {
    const stream = await streamNamed(sides.source, 'big');
    return targetOf(stream, { table, stream_id: table, mode, ...more });
  }
  /** The table that stands beside it. */
  const beside = async () =>
    (await run(`select relname from pg_class where relkind = 'r' and relname like '${table}\\_\\_new%'`))[0]?.relname as
      | string
      | undefined;
  /** How many sessions copy into the table beside it, once others see that one. */
  const copying = async () =>
    (
      await run(`select 1 from pg_stat_progress_copy p join pg_class c on c.oid = p.relid
        where p.datname = current_database() and c.relname like '${table}\\_\\_new%'`)
    ).length;
  return {
    run,
    slow,
    open,
    targetFor,
    beside,
    get table() {
      return table;
    },
    destination(parallel_writes: number, more: Partial<PostgresDestinationConfig> = {}): Destination {
      const { port } = proxy;
      const at = { port, host: '127.0.0.1', ssl_mode: 'disable' as const };
      return destinationConfig(sides.destination, { parallel_writes, ...at, ...more });
    },
    /** Its end is undone after the test. */
    async opened(to: Destination, more: Partial<WriteTarget> = {}): Promise<Writer> {
      const writer = await postgresDestination.open(to.ctx, await targetFor(more));
      writers.push(writer);
      return writer;
    },
    /** Rows of `big`, with a pause before their end that lasts as long as `meanwhile`. */
    async streamOf(meanwhile: () => Promise<unknown> = async () => {}): Promise<ByteStream> {
      const request = requestOf(await streamNamed(sides.source, 'big'));
      const stream = await postgresSource.copy!(sourceConfig(sides.source).ctx, request, 'pgcopy-binary');
      async function* chunks() {
        const waiting = meanwhile();
        waiting.catch(() => {});
        yield* stream.chunks;
        await waiting;
      }
      return { ...stream, chunks: chunks() };
    },
    /** Resolves while at least so many sessions copy beside the table. Opens the line then. */
    async underway(sessions: number): Promise<void> {
      await until(async () => (await copying()) >= sessions);
      open();
    },
    /** Why no other session joins. Opens the line then. */
    warningsOf(to: Destination): { reasons: string[]; warned(): Promise<void> } {
      const reasons: string[] = [];
      to.ctx.log.warn = (_, context) => {
        reasons.push(JSON.stringify(context));
        open();
      };
      return { reasons, warned: () => until(() => reasons.length > 0) };
    },
    /** Nothing stands beside the table, and nothing else is noted. */
    async expectNothingLeft(): Promise<void> {
      const found = await run(`select relname from pg_class where relkind = 'r' and relname like '${table}%'`);
      expect(found.map(({ relname }) => relname)).toEqual([table]);
      const noted = await run(
        `select 1 from _pipeline_state where stream_id = '${table}' and pending_table is not null`,
      );
      expect(noted.length).toBe(0);
    },
    /** Resolves when no session is left. */
    closed: () => until(async () => (await backends(sides.destination)) === 0),
  };
}
