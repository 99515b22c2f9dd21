import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { alone } from './advisory-lock.ts';
import { preparing } from './prepared-statements.ts';
import type { Db } from './types.ts';

export interface Database {
  db: Db;
  url: string;
  /** Calls `heard` for each NOTIFY on `channel`. Notifications can be lost: callers must also poll. */
  listen(channel: string, heard: (payload: string) => void): Promise<{ unlisten(): Promise<void> }>;
  /** Runs `work` while holding a lock that all processes share. @throws the reason of the signal */
  alone<Result>(lock: { name: string; signal: AbortSignal }, work: () => Promise<Result>): Promise<Result>;
  /**
   * The server's time in milliseconds, asked on a connection of its own: it shows whether the server answers at all.
   * @throws DatabaseUnresponsive
   */
  askTime(options: { within_ms: number }): Promise<number>;
  /** Resolves once the server is unresponsive; never if the database is closed before. */
  untilUnresponsive(options: { within_ms: number }): Promise<void>;
  /** Fails all queries and transactions that wait for the server. Later ones connect again. */
  failPending(error: Error): void;
  /** Whether work waits for an answer of the server, or is within a transaction. */
  isAwaited(): boolean;
  /** The pool of this process at this moment. */
  pool(): PoolState;
  close(): Promise<void>;
}

/** Connections of a pool, and queries that wait for one. */
export interface PoolState {
  idle: number;
  busy: number;
  waiting: number;
  max: number;
}

/** The server accepts connections but does not answer, as when its machine is frozen. */
export class DatabaseUnresponsive extends Error {
  override name = 'DatabaseUnresponsive';
}

/**
 * Settings of the server's side of a connection. Without them a machine that drops off the network would hold the locks of
 * its transactions until TCP times out, which takes hours.
 */
const GONE_AFTER_20_S = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 2,
  tcp_user_timeout: 20_000,
};

/** Lists of connections are estimated high enough to be compiled, which takes longer than reading a thousand of them. */
const WITHOUT_JIT = { jit: 'off' };

/** Locks that one process can hold at the same time. Further callers wait for a connection. */
const MAX_LOCKS = 5;

/** Ends a statement that waits for a lock or runs away. Migrations have connections of their own, without a limit. */
const MAX_STATEMENT_MS = 15 * 60_000;

export interface DatabaseOptions {
  max?: number;
  statement_timeout_ms?: number;
}

/** Opens a pool on the control database. `url`: postgres://user:password@host:port/database. */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const settings = {
    onnotice: () => {},
    connection: {
      application_name: 'data-pipelines',
      statement_timeout: options.statement_timeout_ms ?? MAX_STATEMENT_MS,
      ...GONE_AFTER_20_S,
      ...WITHOUT_JIT,
    },
    connect_timeout: 10,
  };
  const client = postgres(url, { ...settings, max: options.max ?? 10 });
  // A separate pool: work under a lock needs another connection, and would wait forever if locks held all of them.
  const locks = postgres(url, { ...settings, max: MAX_LOCKS, idle_timeout: 20, fetch_types: false });
  const watch = postgres(url, { ...settings, max: 1, fetch_types: false });
  const pools = [client, locks, watch];
  return {
    db: drizzle(preparing(client)),
    url,
    listen: async (channel, heard) => {
      const { unlisten } = await client.listen(channel, heard);
      return { unlisten };
    },
    alone: (lock, work) => alone(locks, lock, work),
    askTime: ({ within_ms }) => askTime(watch, within_ms),
    untilUnresponsive: ({ within_ms }) => untilUnresponsive(watch, within_ms),
    isAwaited: () => [client, locks].map(stateOf).some(({ busy, waiting }) => busy + waiting > 0),
    pool: () => stateOf(client),
    failPending: (error) => pools.forEach((pool) => reset(pool, error)),
    close: async () => {
      await Promise.all(pools.map((pool) => pool.end({ timeout: 5 })));
    },
  };
}

/** Both are added to the driver by the patch in db/patches. */
const stateOf = (pool: postgres.Sql) => (pool as postgres.Sql & { stats(): PoolState }).stats();
const reset = (pool: postgres.Sql, error: Error) => (pool as postgres.Sql & { reset(error: Error): void }).reset(error);

async function askTime(watch: postgres.Sql, within_ms: number): Promise<number> {
  const timeout = Promise.withResolvers<null>();
  const timer = setTimeout(() => {
    // The answer may have arrived while this process was busy: it is read before the second turn of the event loop.
    setImmediate(() => setImmediate(timeout.resolve, null));
  }, within_ms);
  try {
    const asking = watch`select extract(epoch from clock_timestamp()) * 1000 as ms`;
    const rows = await Promise.race([asking, timeout.promise]);
    if (rows) return Number(rows[0]?.ms);
  } finally {
    clearTimeout(timer);
  }
  throw new DatabaseUnresponsive(`The control database did not answer within ${within_ms / 1000} s`);
}

const ASK_AGAIN_MS = 200;

async function untilUnresponsive(watch: postgres.Sql, within_ms: number): Promise<void> {
  for (let isSilent = false; !isSilent; await Bun.sleep(ASK_AGAIN_MS)) {
    isSilent = await askTime(watch, within_ms).then(
      () => false,
      // A server that refuses connections fails at once what waits for it.
      (error: unknown) => error instanceof DatabaseUnresponsive,
    );
  }
}
