import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { alone } from './advisory-lock.ts';
import * as schema from './schema/index.ts';
import { preparing } from './prepared-statements.ts';
import type { Db } from './types.ts';

export interface Database {
  db: Db;
  url: string;
  /** Calls `heard` for each NOTIFY on `channel`. A hint only: whoever listens must also look by himself now and then. */
  listen(channel: string, heard: (payload: string) => void): Promise<{ unlisten(): Promise<void> }>;
  /** Does work alone among all processes that name the same lock. @throws the signal's reason */
  alone<Result>(lock: { name: string; signal: AbortSignal }, work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/**
 * For the server: a machine that the network has lost would hold the locks of its transaction for as long as TCP is
 * patient, which is hours.
 */
const GONE_AFTER_20_S = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 2,
  tcp_user_timeout: 20_000,
};

/** Held by one process at the same time; who wants one more waits for a connection. */
const MOST_LOCKS = 5;

/** Opens a pool on the control database. `url`: postgres://user:password@host:port/database. */
export function openDatabase(url: string, options: { max?: number } = {}): Database {
  const settings = {
    onnotice: () => {},
    connection: { application_name: 'data-pipelines', ...GONE_AFTER_20_S },
    connect_timeout: 10,
  };
  const client = postgres(url, { ...settings, max: options.max ?? 10 });
  // A pool apart: what is done under a lock needs a connection too, and would wait for ever where locks held them all.
  const locks = postgres(url, { ...settings, max: MOST_LOCKS, idle_timeout: 20 });
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
