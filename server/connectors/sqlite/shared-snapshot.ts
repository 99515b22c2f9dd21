import type { Database } from 'bun:sqlite';
import type { SharedSnapshot, SnapshotKeeper, StreamSchema } from '../contract/connector.ts';
import { ConfigurationError, RetryableError } from '../contract/errors.ts';
import { SNAPSHOT_LOST } from '../contract/snapshot.ts';
import { isStoredTable } from './catalog.ts';
import { type Context, openSnapshot } from './database.ts';
import { sqliteError } from './failures.ts';

/** A transaction that several reads of this process share: their statements take turns on one connection. */
interface Held {
  database: Database;
  /** With the keeper. The last one closes the connection. */
  users: number;
}

const held = new Map<string, Held>();

export async function keepSnapshot(
  ctx: Context,
  streams: readonly Pick<StreamSchema, 'namespace' | 'name'>[],
): Promise<SnapshotKeeper> {
  const name = crypto.randomUUID();
  const database = await openSnapshot(ctx);
  const apart = streams.find((stream) => !isStoredTable(database, stream.name));
  if (apart) {
    database.close(true);
    throw new ConfigurationError(
      'snapshot_not_shared',
      `The streams cannot be read at one moment: ${apart.name} is not a table, so it is read in a process of its own`,
    );
  }
  const one = { database, users: 1 };
  held.set(name, one);
  const close = async () => {
    if (!held.delete(name)) return;
    ctx.signal.removeEventListener('abort', letGo);
    leave(one);
  };
  const letGo = () => void close();
  ctx.signal.addEventListener('abort', letGo, { once: true });
  return { snapshot: { name }, check: async () => {}, close };
}

/** @throws RetryableError `snapshot_lost` if this process does not hold the snapshot */
export async function* readAt<Item>(
  ctx: Context,
  { name }: SharedSnapshot,
  work: (database: Database) => AsyncGenerator<Item>,
): AsyncGenerator<Item> {
  const one = held.get(name);
  if (!one) throw new RetryableError(SNAPSHOT_LOST, 'This process does not hold the snapshot. A new one is opened');
  one.users += 1;
  try {
    yield* work(one.database);
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw sqliteError(error, ctx.config.path);
  } finally {
    leave(one);
  }
}

function leave(one: Held): void {
  one.users -= 1;
  if (one.users === 0) one.database.close(true);
}
