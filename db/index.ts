import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { alone } from './advisory-lock.ts';
import * as schema from './schema/index.ts';
import { preparing } from './prepared-statements.ts';
import type { Db } from './types.ts';

export interface Database {
  db: Db;
  url: string;
  /** Calls `heard` for each NOTIFY on `channel`. Notifications can be lost: callers must also poll. */
  listen(channel: string, heard: (payload: string) => void): Promise<{ unlisten(): Promise<void> }>;
  /** Runs `work` while holding a lock that all processes share. @throws the reason of the signal */
  alone<Result>(lock: { name: string; signal: AbortSignal }, work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
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

/** Locks that one process can hold at the same time. Further callers wait for a connection. */
const MAX_LOCKS = 5;

/** Opens a pool on the control database. `url`: postgres://user:password@host:port/database. */
export function openDatabase(url: string, options: { max?: number } = {}): Database {
  const settings = {
    onnotice: () => {},
    connection: { application_name: 'data-pipelines', ...GONE_AFTER_20_S },
    connect_timeout: 10,
  };
  const client = postgres(url, { ...settings, max: options.max ?? 10 });
  // A separate pool: work under a lock needs another connection, and would wait forever if locks held all of them.
  const locks = postgres(url, { ...settings, max: MAX_LOCKS, idle_timeout: 20 });
  return {
    db: drizzle(preparing(client), { schema }),
    url,
    listen: async (channel, heard) => {
      const { unlisten } = await client.listen(channel, heard);
      return { unlisten };
    },
    alone: (lock, work) => alone(locks, lock, work),
    close: async () => {
      await Promise.all([client, locks].map((pool) => pool.end({ timeout: 5 })));
    },
  };
}
