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

/** Opens a pool on the control database. `url`: postgres://user:password@host:port/database. */
export function openDatabase(url: string, options: { max?: number } = {}): Database {
  const client = postgres(url, {
    max: options.max ?? 10,
    onnotice: () => {},
    connection: { application_name: 'data-pipelines' },
    connect_timeout: 10,
  });
  return {
    db: drizzle(preparing(client), { schema }),
    url,
    listen: async (channel, heard) => {
      const { unlisten } = await client.listen(channel, heard);
      return { unlisten };
    },
    alone: (lock, work) => alone(client, lock, work),
    close: () => client.end({ timeout: 5 }),
  };
}
