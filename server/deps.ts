import type { Logger } from 'pino';
import type { Database } from '../db/index.ts';
import type { Db } from '../db/types.ts';
import type { Config } from './config.ts';
import type { ObjectStore } from './lib/objects.ts';
import type { Secrets } from './lib/secrets.ts';
import type { Queue } from './queue/boss.ts';

/** What the process has, made once in main.ts and handed down. */
export interface Deps {
  config: Config;
  database: Database;
  db: Db;
  log: Logger;
  now(): Date;
  secrets: Secrets;
  objects: ObjectStore;
  queue: Queue;
}
